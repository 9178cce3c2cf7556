//! `examples/c/fashion.c` in Rust: trains a perceptron on Fashion-MNIST, in fp32 or, by calling
//! `autocast`, in mixed precision.
//!
//!     cargo run --example fashion -- FOLDER [fp32|fp16|bf16 [STEPS]]
//!
//! FOLDER contains train-images-idx3-ubyte and train-labels-idx1-ubyte, unpacked.

use mpcore::{
    Autocast, AutocastConfig, AutocastFlags, Context, Device, Dtype, GraphMode, ParamGroup, Network,
    OptimizerKind, Result, Scaler, ScalerConfig, StepOptions, Stream,
};

const PIXELS: usize = 784;
const HIDDEN: usize = 256;
const CLASSES: usize = 10;
const BATCH: usize = 100;

/// Returns the content of an idx file after its header.
fn load(folder: &str, name: &str, head: usize) -> Vec<u8> {
    let bytes = std::fs::read(format!("{folder}/{name}"));
    bytes.unwrap_or_else(|e| panic!("cannot read {name}: {e}")).split_off(head)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |i, default| arguments.get(i).map_or(default, String::as_str);
    let images = load(argument(1, "."), "train-images-idx3-ubyte", 16);
    let labels = load(argument(1, "."), "train-labels-idx1-ubyte", 8);
    let name = argument(2, "fp16");
    let low = match name {
        "fp32" => Dtype::Fp32,
        "bf16" => Dtype::Bf16,
        _ => Dtype::Fp16,
    };
    let steps = argument(3, "600").parse().unwrap_or(600).min(labels.len() / BATCH);

    let context = Context::new(Device::Auto)?;
    let (x_batch, y_batch) = (context.alloc(BATCH * PIXELS)?, context.alloc(BATCH)?);
    let config = AutocastConfig::new(if low == Dtype::Bf16 { low } else { Dtype::Fp16 })
        .with_flags(AutocastFlags::IGNORE_PERFORMANCE); // also on a CPU, although it is not faster
    let policy = Autocast::new(&config)?;

    let mut net = Network::builder(&context)?;
    let x = net.input("x", Dtype::Fp32, &[BATCH, PIXELS])?;
    let y = net.input("labels", Dtype::DtypeNone, &[BATCH])?;
    let (w1, b1) = (net.parameter("w", &[PIXELS, HIDDEN])?, net.parameter("b", &[HIDDEN])?);
    let (w2, b2) = (net.parameter("w", &[HIDDEN, CLASSES])?, net.parameter("b", &[CLASSES])?);
    let hidden = net.node("Linear", "fc1", &[x, w1, b1]).output()?;
    let hidden = net.node("Relu", "relu", &[hidden]).output()?;
    let logits = net.node("Linear", "fc2", &[hidden, w2, b2]).output()?;
    let loss = net.node("SoftmaxXent", "loss", &[logits, y]).output()?;
    net.loss(loss)?;
    if low != Dtype::Fp32 {
        net.autocast(&policy)?; // mixed precision
    }
    let mut net = net.compile()?;

    // Small values from a linear congruential generator; the biases stay 0.
    let mut state = 1u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 24) as f32 - 127.5) / 2048.0
    };
    for (w, count) in [(w1, PIXELS * HIDDEN), (w2, HIDDEN * CLASSES)] {
        let values: Vec<f32> = (0..count).map(|_| number()).collect();
        net.write(w, &values, Stream::DEFAULT)?;
    }

    let mut group = ParamGroup::new(OptimizerKind::Sgd, 0.1);
    group.beta1 = 0.0;
    let sgd = net.optimizer(OptimizerKind::Sgd)?.group(group).build()?;
    let scaler = Scaler::new(&context, &ScalerConfig::for_autocast(low)?)?;
    net.bind(x, &x_batch)?;
    net.bind(y, &y_batch)?;
    let mut sum = 0.0f32;
    for (step, batch) in images.chunks(BATCH * PIXELS).take(steps).enumerate() {
        let pixels: Vec<f32> = batch.iter().map(|&p| f32::from(p) / 256.0).collect();
        x_batch.copy_from(&pixels)?;
        let of_batch = &labels[step * BATCH..(step + 1) * BATCH];
        y_batch.copy_from(&of_batch.iter().map(|&l| i32::from(l)).collect::<Vec<_>>())?;
        net.forward(GraphMode::Training, Stream::DEFAULT)?;
        net.backward(Some(&scaler), Stream::DEFAULT)?;
        sgd.scale_step(Some(&scaler), &StepOptions::default(), Stream::DEFAULT)?;
        if step + 100 >= steps {
            sum += net.data::<f32>(loss)?.to_vec()?[0]; // average the last hundred losses
        }
    }
    println!("{name}: loss {:.4}", f64::from(sum) / steps.min(100) as f64);
    Ok(())
}
