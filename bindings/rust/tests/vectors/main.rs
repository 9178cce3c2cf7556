//! The calls of bindings/vectors.txt, and the same calls with an array that is too short or belongs
//! to another context.

/// Calls setters of a builder with the values that are present.
macro_rules! set {
    ($builder:ident, $($setter:ident($value:expr)),*) => {
        $(if let Some(value) = $value {
            $builder = $builder.$setter(value);
        })*
    };
}

/// Calls setters without arguments for the options that are set.
macro_rules! switch {
    ($builder:ident, $v:ident, $($setter:ident),*) => {
        $(if $v.is_set(stringify!($setter)) {
            $builder = $builder.$setter();
        })*
    };
}

mod cases;
#[path = "../common/mod.rs"]
mod common;
mod with_arrays;
mod with_layers;
mod with_losses;

use cases::{cases, Case, Fault, Run};
use common::{context, refused};
use mpcore::*;
use with_arrays::*;
use with_layers::*;
use with_losses::*;

const STREAM: Stream = Stream::DEFAULT;

/// Function in the file, its name in messages, and the calls.
type Operation = (&'static str, &'static str, fn(&Run) -> Result<()>);

const OPERATIONS: [Operation; 27] = [
    ("gemm", "gemm", gemm),
    ("gemm_grouped", "gemm_grouped", gemm_grouped),
    ("gemm_ragged", "gemm_ragged", gemm_ragged),
    ("Conv2d", "conv2d", conv2d),
    ("Pool2d", "pool2d", pool2d),
    ("BatchNorm", "BatchNorm", batch_norm),
    ("Norm", "Norm", norm_of_any_type),
    ("ColumnSum", "column_sum", column_sum),
    ("sum_rows", "sum_rows", sum_rows),
    ("pointwise", "pointwise", pointwise),
    ("glu_forward", "glu", glu),
    ("glu_backward", "glu", glu),
    ("strided_copy", "strided_copy", strided_copy),
    ("nchw_to_nhwc", "nchw_to_nhwc", nchw_to_nhwc),
    ("nhwc_to_nchw", "nhwc_to_nchw", nhwc_to_nchw),
    ("cast", "cast", cast),
    ("rope", "rope", rope),
    ("softmax_forward", "softmax", softmax),
    ("softmax_backward", "softmax", softmax),
    ("Embedding", "embedding", embedding),
    ("dropout", "dropout", dropout),
    ("softmax_xent", "softmax_xent", softmax_xent),
    ("xent_count", "xent_count", xent_count),
    ("linear_xent", "linear_xent", linear_xent),
    ("element_loss", "element_loss", element_loss),
    ("Rnn", "rnn", rnn_of_any_type),
    ("Attention", "attention", attention),
];

/// Arguments whose length determines the number of elements.
const FREE: [&str; 3] = ["dropout x", "xent_count labels", "cast src"];

/// Returns the name of an argument in messages.
fn own_name(case: &Case, function: &str, name: &str) -> String {
    let of_layer = |name: &str, list: &str| {
        let (kind, layer) = name.split_once("_l").unwrap();
        let all = case.arrays.iter().filter_map(|g| g.name.strip_prefix("weights.weight_hh_l"));
        let at = all.into_iter().position(|other| other == layer).unwrap();
        format!("{list}[{at}].{}", kind.replace("weight", "w").replace("bias", "b"))
    };
    match (function, name.split_once('.')) {
        ("rnn", Some((list, name))) => of_layer(name, list),
        ("gemm" | "gemm_ragged", _) if name == "out" => "d".into(),
        ("gemm_grouped", Some((product, "out"))) => format!("{product}.d"),
        ("softmax", _) if name == "lengths" => "mask".into(),
        ("BatchNorm", _) => name.replace("running_", ""),
        _ => name.into(),
    }
}

#[test]
fn results_are_those_of_the_file() {
    for_each(|call, case, _, context| {
        let run = Run::new(context, case, None);
        call(&run).unwrap_or_else(|error| panic!("{}: {error}", case.title));
        run.check();
    });
}

#[test]
fn every_array_is_checked() {
    for_each(|call, case, function, context| {
        for given in case.arrays.iter().filter(|given| !given.name.starts_with("self.")) {
            let name = own_name(case, function, &given.name);
            let len = given.shape.iter().product::<usize>();
            let with = |fault| call(&Run::new(context, case, Some((given.name.as_str(), fault))));
            let foreign = format!("{function}: {name} belongs to another context");
            refused(with(Fault::Foreign), &foreign);
            if len > 0 && !FREE.contains(&format!("{function} {name}").as_str()) {
                let short = format!("has {} elements, but must have at least {len}", len - 1);
                refused(with(Fault::Short), &format!("{function}: {name} {short}"));
            }
        }
    });
}

fn for_each(check: impl Fn(fn(&Run) -> Result<()>, &Case, &str, &Context)) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors.txt");
    let (cases, context) = (cases(&std::fs::read_to_string(path).unwrap()), context());
    let is_of = |case: &Case, name: &str| case.title.split(' ').next() == Some(name);
    for case in &cases {
        let known = OPERATIONS.iter().find(|operation| is_of(case, operation.0));
        let (_, function, call) = known.unwrap_or_else(|| panic!("{} is unknown", case.title));
        check(*call, case, function, &context);
    }
    for (name, ..) in OPERATIONS {
        assert!(cases.iter().any(|case| is_of(case, name)), "no case of {name}");
    }
}
