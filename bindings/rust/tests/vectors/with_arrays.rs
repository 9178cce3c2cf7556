//! Products and operations on arrays.  `v` is the run, which has the options and arrays of a case.

use crate::cases::{view, Run};
use crate::STREAM;
use mpcore::*;

/// Begins the product of a and b into out.
fn product<'r>(v: &'r Run) -> Gemm<'r> {
    let turned = |name, option| {
        let [_, rows, columns] = v.rows(name);
        if v.is_set(option) {
            (columns, rows)
        } else {
            (rows, columns)
        }
    };
    let ((m, k), (_, n)) = (turned("a", "transpose_a"), turned("b", "transpose_b"));
    let mut gemm = v.context.gemm(m, n, k);
    switch!(gemm, v, transpose_a, transpose_b);
    set!(gemm, alpha(v.number("alpha")), beta(v.number("beta")));
    let stride = |name| match v.shape(name) {
        [_, rows, columns] => rows * columns,
        _ => 0,
    };
    let batch = ["b", "out"].into_iter().find(|name| v.shape(name).len() == 3);
    if let Some(name) = batch {
        gemm = gemm.batch(v.shape(name)[0] as u32, stride("a"), stride("b"), stride("out"));
    }
    gemm
}

pub fn gemm(v: &Run) -> Result<()> {
    let (a, b, out, addend) = (v.get::<F16>("a"), v.get("b"), v.get::<f32>("out"), v.opt("c"));
    let (bias, aux, dbias) = (v.opt::<F16>("bias"), v.opt::<f32>("aux"), v.opt("dbias"));
    let (scale, amax, found_inf) = (v.opt("scale"), v.opt("amax"), v.opt("found_inf"));
    let mut gemm = product(v);
    set!(gemm, bias(&bias), activation(v.named("activation", Activation::from_raw)), aux(&aux));
    set!(gemm, dbias(&dbias), scale(&scale), amax(&amax), found_inf(&found_inf));
    if let Some(addend) = &addend {
        gemm = gemm.c::<f32>(addend);
    }
    gemm.run(&a, &b, &out)
}

pub fn gemm_ragged(v: &Run) -> Result<()> {
    let (a, b, out, ends) = (v.get::<F16>("a"), v.get("b"), v.get::<f32>("out"), v.get("ends"));
    let ragged = if v.shape("b").len() == 3 { Ragged::M } else { Ragged::K };
    let bytes = product(v).ragged_workspace_size::<F16, f32>(ragged)?;
    let space = v.context.alloc(bytes.max(256))?;
    product(v).workspace(&space).run_ragged(ragged, &ends, &a, &b, &out)
}

pub fn gemm_grouped(v: &Run) -> Result<()> {
    let names = |i: usize| ["a", "b", "out"].map(|name| format!("products[{i}].{name}"));
    let names: Vec<_> = (0..).map(names).take_while(|names| v.has(&names[0])).collect();
    let ab = |[a, b, _]: &[String; 3]| [v.get::<F16>(a), v.get(b)];
    let operands: Vec<_> = names.iter().map(ab).collect();
    let out: Vec<_> = names.iter().map(|[_, _, out]| v.get::<f32>(out)).collect();
    let mut group = v.context.gemm_grouped::<F16, f32>();
    switch!(group, v, transpose_a, transpose_b);
    for ((names, [a, b]), out) in names.iter().zip(&operands).zip(&out) {
        let k = v.shape(&names[0])[usize::from(!v.is_set("transpose_a"))];
        let [m, n] = v.rows(&names[2]);
        group = group.product((m, n, k), a, b, out)?;
    }
    let (scale, space) = (v.opt("scale"), v.context.alloc(group.workspace_size()?.max(256))?);
    let mut epilogue = Epilogue::default();
    set!(epilogue, scale(&scale));
    let workspace = Some(space.view());
    group.run(&OutputOptions { epilogue, workspace, ..options(v) })
}

pub fn options<'r>(v: &Run) -> OutputOptions<'r> {
    let (alpha, beta) = (v.number("alpha").unwrap_or(1.0), v.number("beta").unwrap_or(0.0));
    OutputOptions { alpha, beta, ..Default::default() }
}

pub fn column_sum(v: &Run) -> Result<()> {
    let (rows, columns) = (v.number("rows").unwrap(), v.number("columns").unwrap());
    let columns = ColumnSum::<F16, f32>::new(&v.context, rows, columns)?;
    let (scale, amax, found_inf) = (v.opt("scale"), v.opt("amax"), v.opt("found_inf"));
    let mut epilogue = Epilogue::default();
    set!(epilogue, scale(&scale), amax(&amax), found_inf(&found_inf));
    columns.run(&v.get("x"), &v.get("sum"), options(v).beta, &epilogue, STREAM)
}

pub fn sum_rows(v: &Run) -> Result<()> {
    let ([rows, columns], stats) = (v.rows("x"), v.stats());
    let (x, sum) = (v.get::<f32>("x"), v.get::<F16>("sum"));
    let (shape, beta) = ([rows, v.number("period").unwrap(), columns], options(v).beta);
    v.context.sum_rows(shape, &x, &sum, beta, &stats.view(), STREAM)
}

pub fn pointwise(v: &Run) -> Result<()> {
    let ([rows, columns], op) = (v.rows("a"), v.named("op", PointwiseOp::from_raw).unwrap());
    let (a, b, y, stats) = (v.get::<F16>("a"), v.opt::<f32>("b"), v.get("y"), v.stats());
    let mut call = v.context.pointwise(op, rows, columns).stats(stats.view());
    set!(call, activation(v.named("activation", Activation::from_raw)), slope(v.number("slope")));
    if let Some((low, high)) = v.number("low").zip(v.number("high")) {
        call = call.bounds(low, high);
    }
    if let Some(b) = &b {
        call = match v.shape("b") {
            [_] => call.bias(b),
            shape if shape == v.shape("a") => call.b(b),
            _ => call.repeated(b, v.shape("b")[0]),
        };
    }
    call.run(&a, &y)
}

pub fn glu(v: &Run) -> Result<()> {
    let [rows, columns] = v.rows("x");
    let activation = v.named("activation", Activation::from_raw).unwrap();
    let (x, stats) = (v.get::<F16>("x"), v.stats());
    let glu = v.context.glu(activation, rows, columns / 2).stats(stats.view());
    if v.has("y") {
        return glu.forward(&x, &v.get("y"));
    }
    glu.backward(&x, &v.get("dy"), &v.get("dx"))
}

pub fn strided_copy(v: &Run) -> Result<()> {
    let (x, y, stats) = (v.get::<F16>("x"), v.get("y"), v.stats());
    let copy = v.context.strided_copy(v.rows::<2>("x")).stats(stats.view());
    copy.factors(v.number("alpha").unwrap(), v.number("beta").unwrap()).run(&x, &y)
}

pub fn nchw_to_nhwc(v: &Run) -> Result<()> {
    v.context.nchw_to_nhwc(v.rows("src"), &v.get::<f32>("src"), &v.get::<F16>("dst"), STREAM)
}

pub fn nhwc_to_nchw(v: &Run) -> Result<()> {
    v.context.nhwc_to_nchw(v.rows("dst"), &v.get::<F16>("src"), &v.get::<f32>("dst"), STREAM)
}

pub fn cast(v: &Run) -> Result<()> {
    v.context.cast(&v.get::<f32>("src"), &v.get::<F16>("dst"), STREAM)
}

pub fn rope(v: &Run) -> Result<()> {
    let ([rows, heads, head_dim], stats) = (v.rows("x"), v.stats());
    let (x, y) = (v.get::<f32>("x"), v.get("y"));
    let (positions, inv_freq) = (v.opt("positions"), v.opt("inv_freq"));
    let mut rope = v.context.rope(rows, heads, head_dim)?.stats(stats.view());
    set!(rope, rotary_dim(v.number("rotary_dim")), base(v.number("base")));
    set!(rope, period(v.number("period")), positions(&positions), inv_freq(&inv_freq));
    switch!(rope, v, interleaved, inverse);
    rope.run(&x, &y)
}

pub fn softmax(v: &Run) -> Result<()> {
    let ([rows, columns], stats) = (v.rows("y"), v.stats());
    let (lengths, mask) = (v.opt("lengths"), v.opt::<F16>("mask"));
    let mut softmax = v.context.softmax(rows, columns).stats(stats.view());
    set!(softmax, scale(v.number("scale")));
    switch!(softmax, v, log);
    if v.is_set("causal") {
        softmax = softmax.causal(v.rows::<3>("y")[1]);
    }
    if let Some(lengths) = &lengths {
        softmax = softmax.lengths(lengths, rows / v.shape("lengths")[0]);
    }
    if let Some(mask) = &mask {
        softmax = softmax.mask(mask, v.shape("mask")[0]);
    }
    let y = v.get::<f32>("y");
    if v.has("x") {
        return softmax.forward(&v.get("x"), &y);
    }
    softmax.backward(&y, &v.get("dy"), &v.get("dx"))
}

pub fn dropout(v: &Run) -> Result<()> {
    let (p, seed, offset) = (v.number("p").unwrap(), v.number("seed").unwrap(), v.opt("offset"));
    let (x, y, stats) = (v.get::<F16>("x"), v.get("y"), v.stats());
    v.context.dropout(p, seed, view(&offset), &x, &y, &stats.view(), STREAM)
}
