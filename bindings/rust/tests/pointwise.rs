//! Pointwise functions of small integers, which are exact.

mod common;

use common::{context, integers, refused, to_f16, too_short};
use mpcore::*;

const ROWS: usize = 3;
const COLUMNS: usize = 5;
const COUNT: usize = ROWS * COLUMNS;

/// Keeps -0 like the library; f32::max may return either zero.
fn relu(x: f32) -> f32 {
    if x < 0.0 {
        0.0
    } else {
        x
    }
}

#[test]
fn binary_operations() {
    let c = context();
    let (a, b) = (integers(COUNT, 1), integers(COUNT + 2 * 2, 2));
    let (on_a, on_b) = (c.upload(&to_f16(&a)).unwrap(), c.upload(&b).unwrap());
    let y = c.alloc::<F16>(COUNT).unwrap();
    let of = |op: fn(f32, f32) -> f32, place: fn(usize) -> usize| {
        let all: Vec<f32> = (0..COUNT).map(|i| relu(op(a[i], b[place(i)]))).collect();
        to_f16(&all)
    };
    let call = |op| c.pointwise(op, ROWS, COLUMNS).activation(Activation::Relu);
    call(PointwiseOp::Add).b(&on_b).run(&on_a, &y).unwrap();
    assert_eq!(y.to_vec().unwrap(), of(|a, b| a + b, |i| i));
    call(PointwiseOp::Sub).b(&on_b).run(&on_a, &y).unwrap();
    assert_eq!(y.to_vec().unwrap(), of(|a, b| a - b, |i| i));
    call(PointwiseOp::LeakyRelu).slope(-2.0).run(&on_a, &y).unwrap();
    assert_eq!(y.to_vec().unwrap(), of(|a, _| if a > 0.0 { a } else { -2.0 * a }, |i| i));
    call(PointwiseOp::Dclip).bounds(0.0, 2.0).b(&on_b).run(&on_a, &y).unwrap();
    let inside = |a, b| if (0.0..=2.0).contains(&b) { a } else { 0.0 };
    assert_eq!(y.to_vec().unwrap(), of(inside, |i| i));
    call(PointwiseOp::Mul).b_with_ld(&on_b, COLUMNS + 2).run(&on_a, &y).unwrap();
    assert_eq!(
        y.to_vec().unwrap(),
        of(|a, b| a * b, |i| i / COLUMNS * (COLUMNS + 2) + i % COLUMNS)
    );
    call(PointwiseOp::Mul).bias(&on_b.slice(0, COLUMNS)).run(&on_a, &y).unwrap();
    assert_eq!(y.to_vec().unwrap(), of(|a, b| a * b, |i| i % COLUMNS));
    call(PointwiseOp::Mul).bias(&on_b).run(&on_a, &on_a).unwrap(); // in place
    assert_eq!(on_a.to_vec().unwrap(), y.to_vec().unwrap());
}

#[test]
fn unary_operations_and_gradients() {
    let c = context();
    let (a, dy) = (integers(COUNT, 1), integers(COUNT, 2));
    let (x, gradient) = (c.upload(&a).unwrap(), c.upload(&dy).unwrap());
    let y = c.alloc::<f32>(COUNT).unwrap();
    c.pointwise(PointwiseOp::Copy, 1, COUNT).activation(Activation::Relu).run(&x, &y).unwrap();
    assert_eq!(y.to_vec().unwrap(), a.iter().map(|&x| relu(x)).collect::<Vec<_>>());
    let backward = c.pointwise(PointwiseOp::Copy, 1, COUNT).activation(Activation::Drelu);
    backward.b(&x).stream(Stream::DEFAULT).run(&gradient, &gradient).unwrap();
    let wanted: Vec<_> = a.iter().zip(&dy).map(|(&a, &d)| if a > 0.0 { d } else { 0.0 }).collect();
    assert_eq!(gradient.to_vec().unwrap(), wanted);
}

#[test]
fn column_sums() {
    let c = context();
    let values = integers(COUNT, 1);
    let x = c.upload(&to_f16(&values)).unwrap();
    let sums = c.upload(&[100.0f32; COLUMNS]).unwrap();
    let columns = ColumnSum::<F16, f32>::new(&c, ROWS, COLUMNS).unwrap();
    columns.run(&x, &sums, 1.0, &Epilogue::default(), Stream::DEFAULT).unwrap();
    let sum = |j: usize| values.iter().skip(j).step_by(COLUMNS).sum::<f32>();
    let wanted: Vec<f32> = (0..COLUMNS).map(|j| 100.0 + sum(j)).collect();
    assert_eq!(sums.to_vec().unwrap(), wanted);
    too_short(
        columns.run(&x.slice(0, 14), &sums, 0.0, &Epilogue::default(), Stream::DEFAULT),
        "column_sum: x",
        [14, 15],
    );
    let bias = Epilogue::default().bias(&sums);
    let unsupported = columns.run(&x, &sums, 0.0, &bias, Stream::DEFAULT);
    assert!(unsupported.unwrap_err().to_string().contains("is not supported by mp_column_sum"));
}

#[test]
fn invalid_arguments_are_rejected() {
    let (c, other) = (context(), context());
    let (long, short) = (c.alloc::<f32>(COUNT).unwrap(), c.alloc::<f32>(COUNT - 1).unwrap());
    let foreign = other.alloc::<f32>(COUNT).unwrap();
    let add = || c.pointwise(PointwiseOp::Add, ROWS, COLUMNS);
    too_short(add().b(&long).run(&short, &long), "pointwise: a", [14, 15]);
    too_short(add().b(&long).run(&long, &short), "pointwise: y", [14, 15]);
    too_short(add().b(&short).run(&long, &long), "pointwise: b", [14, 15]);
    too_short(add().b_with_ld(&long, COLUMNS + 1).run(&long, &long), "pointwise: b", [15, 17]);
    too_short(add().bias(&long.slice(0, 4)).run(&long, &long), "pointwise: b", [4, 5]);
    refused(add().b(&foreign).run(&long, &long), "pointwise: b belongs to another context");
    refused(add().run(&long, &long), "mp_pointwise: b = NULL");
    refused(
        add().activation(Activation::Dtanh).b(&long).run(&long, &long),
        "mp_pointwise: activation = MP_ACT_DTANH requires op = MP_POINTWISE_COPY, but op = MP_POINTWISE_ADD",
    );
    refused(
        c.pointwise(PointwiseOp::Copy, usize::MAX, 0).run(&long, &long),
        "mp_pointwise: rows = -1 is negative",
    );
}
