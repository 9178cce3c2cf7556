//! Embeddings and dropout of small integers, which are exact.

mod common;

use common::{context, integers, refused, to_f16, too_short};
use mpcore::*;

const STREAM: Stream = Stream::DEFAULT;
const NO_STATS: GradStats = GradStats { found_inf: None, amax: None };
const VOCABULARY: usize = 5;
const WIDTH: usize = 3;
const INDICES: [i32; 6] = [4, 0, 4, 2, 2, 4];
const OF_TABLE: usize = VOCABULARY * WIDTH;
const OF_OUT: usize = INDICES.len() * WIDTH;
const PADDING: usize = 2;

fn embedding<T: Float, G: Float>(c: &Context) -> Embedding<T, G> {
    c.embedding(INDICES.len(), VOCABULARY, WIDTH).unwrap()
}

#[test]
fn embedding_gathers_rows() {
    let c = context();
    let table: Vec<f32> = integers(OF_TABLE, 1);
    let wanted: Vec<f32> =
        INDICES.iter().flat_map(|&v| &table[v as usize * WIDTH..][..WIDTH]).copied().collect();
    let (on_device, indices) = (c.upload(&to_f16(&table)).unwrap(), c.upload(&INDICES).unwrap());
    let out = c.alloc::<F16>(OF_OUT).unwrap();
    embedding::<F16, F16>(&c).forward(&on_device, &indices, &out, STREAM).unwrap();
    assert_eq!(out.to_vec().unwrap(), to_f16(&wanted));

    let wide = c.upload(&INDICES.map(i64::from)).unwrap();
    out.clear(STREAM).unwrap();
    embedding::<F16, F16>(&c).forward(&on_device, &wide, &out, STREAM).unwrap();
    assert_eq!(out.to_vec().unwrap(), to_f16(&wanted));

    let outside = c.upload(&[VOCABULARY as i32, 1, 1, 1, 1, -1]).unwrap();
    let (table, out) = (c.upload(&table).unwrap(), c.alloc::<f32>(OF_OUT).unwrap());
    embedding::<f32, f32>(&c).forward(&table, &outside, &out, STREAM).unwrap();
    let nans: Vec<_> = out.to_vec().unwrap().iter().map(|v| v.is_nan()).collect();
    assert_eq!(
        nans,
        [[true; 3], [false; 3], [false; 3], [false; 3], [false; 3], [true; 3]].concat()
    );
}

#[test]
fn embedding_gradient_sums_rows() {
    let c = context();
    let numbers = integers(OF_OUT, 2);
    let (dout, indices) = (c.upload(&to_f16(&numbers)).unwrap(), c.upload(&INDICES).unwrap());
    for padding in [None, Some(PADDING)] {
        let mut sums = [0.0; OF_TABLE];
        for (i, v) in INDICES.iter().map(|&v| v as usize).enumerate() {
            for j in (0..WIDTH).filter(|_| Some(v) != padding) {
                sums[v * WIDTH + j] += numbers[i * WIDTH + j];
            }
        }
        let mut embedding = embedding::<F16, f32>(&c);
        if let Some(index) = padding {
            embedding = embedding.padding(index).unwrap();
        }
        let begin = 2.0;
        let dtable = c.upload(&[begin; OF_TABLE]).unwrap();
        let (found_inf, amax) = (c.alloc(1).unwrap(), c.alloc(1).unwrap());
        for (accumulate, more) in [(true, begin), (false, 0.0)] {
            let options = EmbeddingGradOptions {
                accumulate,
                stats: GradStats { found_inf: Some(found_inf.view()), amax: Some(amax.view()) },
            };
            amax.clear(STREAM).unwrap();
            embedding.backward(&indices, &dout, &dtable, &options, STREAM).unwrap();
            let wanted = sums.map(|v| v + more);
            assert_eq!(dtable.to_vec().unwrap(), wanted);
            assert_eq!(found_inf.to_vec().unwrap(), [0.0]);
            if !accumulate {
                let most = wanted.iter().fold(0.0, |most: f32, v| most.max(v.abs()));
                assert_eq!(amax.to_vec().unwrap(), [most]);
            }
        }
    }
}

/// Philox of zeros starts with 6627e8d5 e169c58d bc57ac4c 9b00dbd8, and 2^32 3/4 is c0000000.
#[test]
fn dropout_masks() {
    let c = context();
    let x = c.upload(&to_f16(&[1.0, 2.0, 3.0, 4.0])).unwrap();
    let (y, offset) = (c.alloc::<F16>(4).unwrap(), c.upload(&[0i64]).unwrap());
    c.dropout(0.75, 0, None, &x, &y, &NO_STATS, STREAM).unwrap();
    assert_eq!(y.to_vec().unwrap(), to_f16(&[0.0, 8.0, 0.0, 0.0]));
    c.dropout(0.5, 0, Some(offset.view()), &x, &x, &NO_STATS, STREAM).unwrap();
    assert_eq!(x.to_vec().unwrap(), to_f16(&[0.0, 4.0, 6.0, 8.0]));

    let ones = c.upload(&[1f32; 64]).unwrap();
    let mask = |seed, offset: i64| {
        let (offset, y) = (c.upload(&[offset]).unwrap(), c.alloc::<f32>(64).unwrap());
        c.dropout(0.5, seed, Some(offset.view()), &ones, &y, &NO_STATS, STREAM).unwrap();
        y.to_vec().unwrap()
    };
    assert_ne!(mask(0, 0), mask(0, 1));
    assert_ne!(mask(0, 0), mask(1 << 63, 0));
}

#[test]
fn invalid_arguments_are_rejected() {
    let c = context();
    let all = c.alloc::<f32>(OF_OUT + OF_TABLE).unwrap(); // large enough for everything
    let (table, out) = (all.slice(0, OF_TABLE), all.slice(OF_TABLE, OF_OUT));
    let indices = c.upload(&INDICES).unwrap();
    let e = embedding::<f32, f32>(&c);
    too_short(
        e.forward(&all.slice(0, OF_TABLE - 1), &indices, &out, STREAM),
        "embedding: table",
        [14, 15],
    );
    too_short(e.forward(&table, &indices.slice(1, 5), &out, STREAM), "embedding: indices", [5, 6]);
    too_short(
        e.forward(&table, &indices, &all.slice(0, OF_OUT - 1), STREAM),
        "embedding: out",
        [17, 18],
    );
    let none = EmbeddingGradOptions::default();
    too_short(
        e.backward(&indices.slice(1, 5), &out, &table, &none, STREAM),
        "embedding: indices",
        [5, 6],
    );
    too_short(
        e.backward(&indices, &all.slice(0, OF_OUT - 1), &table, &none, STREAM),
        "embedding: dout",
        [17, 18],
    );
    too_short(
        e.backward(&indices, &out, &all.slice(0, OF_TABLE - 1), &none, STREAM),
        "embedding: dtable",
        [14, 15],
    );
    let amax = Some(all.slice(0, 0));
    let stats = GradStats { amax, ..Default::default() };
    let options = EmbeddingGradOptions { stats, ..none };
    too_short(e.backward(&indices, &out, &table, &options, STREAM), "embedding: amax", [0, 1]);
    let other = context();
    let foreign = other.upload(&INDICES).unwrap();
    refused(
        e.forward(&table, &foreign, &out, STREAM),
        "embedding: indices belongs to another context",
    );
    refused(
        c.embedding::<f32, f32>(1, 1 << 31, 1).map(|_| ()),
        "embedding: num_embeddings = 2147483648 exceeds 2^31 - 1",
    );
    let e = e.padding(VOCABULARY).unwrap();
    refused(
        e.forward(&table, &indices, &out, STREAM),
        "mp_embedding_forward: padding_index = 5 is outside [0, num_embeddings = 5)",
    );

    refused(
        c.dropout(0.5, 0, None, &out, &table, &NO_STATS, STREAM),
        "dropout: y has 15 elements, but must have at least 18",
    );
    let offset = c.alloc::<i64>(0).unwrap();
    too_short(
        c.dropout(0.5, 0, Some(offset.view()), &out, &out, &NO_STATS, STREAM),
        "dropout: offset",
        [0, 1],
    );
    refused(
        c.dropout(1.0, 0, None, &out, &out, &NO_STATS, STREAM),
        "mp_dropout: p = 1 is outside [0, 1)",
    );
}
