//! `examples/c/gpt.c` in Rust: trains its small GPT-2 on a text, with the same bits.
//!
//!     cargo run --example gpt -- FILE [fp32|fp16|bf16 [STEPS]]

use mpcore::{
    Autocast, AutocastConfig, AutocastFlags, Context, Device, Dtype, GraphMode, LrSchedule, Network,
    NetworkBuilder, Result, Scaler, ScalerConfig, StepOptions, Stream, TensorId,
};

const LAYERS: usize = 2;
const WIDTH: usize = 64;
const HEADS: i64 = 2;
const LENGTH: usize = 64;
const CHARACTERS: usize = 96;
const BATCH: usize = 16;

fn token_of(character: u8) -> i32 {
    match character {
        b'\n' => 0,
        b' '..=b'~' => i32::from(character) - 31,
        _ => 1,
    }
}

/// Advances a linear congruential generator; returns its upper bits.
fn next_random(state: &mut u32, bits: u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> (32 - bits)
}

/// A network and its parameters: name, shape, tensor.
struct Description<'a> {
    net: NetworkBuilder<'a>,
    parameters: Vec<(String, Vec<usize>, TensorId)>,
}

impl Description<'_> {
    fn parameter(&mut self, name: String, shape: &[usize]) -> Result<TensorId> {
        let tensor = self.net.parameter(&name, shape)?;
        self.parameters.push((name, shape.to_vec(), tensor));
        Ok(tensor)
    }

    fn node(&mut self, op: &str, name: &str, inputs: &[TensorId]) -> Result<TensorId> {
        self.net.node(op, name, inputs).output()
    }

    /// Adds a Linear or, if `inputs` is 0, a `LayerNorm`, and its parameters.
    fn layer(&mut self, x: TensorId, name: &str, inputs: usize, outputs: usize) -> Result<TensorId> {
        let shape = [inputs, outputs];
        let w = self.parameter(format!("{name}.weight"), &shape[usize::from(inputs == 0)..])?;
        let b = self.parameter(format!("{name}.bias"), &[outputs])?;
        self.node(if inputs > 0 { "Linear" } else { "LayerNorm" }, name, &[x, w, b])
    }

    /// Adds a layer of the transformer.
    fn block(&mut self, x: TensorId, i: usize) -> Result<TensorId> {
        let h = self.layer(x, &format!("h.{i}.ln_1"), 0, WIDTH)?;
        let h = self.layer(h, &format!("h.{i}.attn.c_attn"), WIDTH, 3 * WIDTH)?;
        let attention = self.net.node("Attention", &format!("h.{i}.attn"), &[h]);
        let h = attention.attribute("heads", HEADS).attribute("causal", 1).output()?;
        let h = self.layer(h, &format!("h.{i}.attn.c_proj"), WIDTH, WIDTH)?;
        let x = self.node("Add", &format!("h.{i}.attn/residual"), &[x, h])?;
        let h = self.layer(x, &format!("h.{i}.ln_2"), 0, WIDTH)?;
        let h = self.layer(h, &format!("h.{i}.mlp.c_fc"), WIDTH, 4 * WIDTH)?;
        let h = self.node("Gelu", &format!("h.{i}.mlp.gelu"), &[h])?;
        let h = self.layer(h, &format!("h.{i}.mlp.c_proj"), 4 * WIDTH, WIDTH)?;
        self.node("Add", &format!("h.{i}.mlp/residual"), &[x, h])
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |i, default| arguments.get(i).map_or(default, String::as_str);
    let bytes = std::fs::read(argument(1, "")).unwrap_or_else(|e| panic!("cannot read FILE: {e}"));
    let text: Vec<i32> = bytes.into_iter().map(token_of).collect();
    let low = match argument(2, "fp16") {
        "fp32" => Dtype::Fp32,
        "bf16" => Dtype::Bf16,
        "fp16" => Dtype::Fp16,
        other => panic!("{other}: must be fp32, fp16 or bf16"),
    };
    let steps: u32 = argument(3, "200").parse().expect("STEPS must be an integer");
    assert!(text.len() > LENGTH, "FILE must be longer than a context");

    let context = Context::new(Device::Auto)?;
    let config = AutocastConfig::new(if low == Dtype::Bf16 { low } else { Dtype::Fp16 })
        .with_flags(AutocastFlags::IGNORE_PERFORMANCE);
    let policy = Autocast::new(&config)?;
    let mut d = Description { net: Network::builder(&context)?, parameters: Vec::new() };
    let tokens = d.net.input("tokens", Dtype::DtypeNone, &[BATCH, LENGTH])?;
    let labels = d.net.input("labels", Dtype::DtypeNone, &[BATCH, LENGTH])?;
    let wte = d.parameter("wte.weight".into(), &[CHARACTERS, WIDTH])?;
    let wpe = d.parameter("wpe.weight".into(), &[LENGTH, WIDTH])?;
    let embedding = d.node("Embedding", "wte", &[wte, tokens])?;
    let mut x = d.node("Add", "positions", &[embedding, wpe])?;
    for i in 0..LAYERS {
        x = d.block(x, i)?;
    }
    let x = d.layer(x, "ln_f", 0, WIDTH)?;
    let loss = d.net.node("LinearXent", "loss", &[x, wte]).input(None).input(labels).output()?;
    d.net.loss(loss)?;
    if low != Dtype::Fp32 {
        d.net.autocast(&policy)?;
    }
    let Description { net, parameters } = d;
    let mut net = net.compile()?;

    let mut state = 1;
    for (name, shape, tensor) in &parameters {
        let terms = if name.contains("c_proj") { 2 * LAYERS } else { 1 };
        let deviation = (0.02 / (terms as f64).sqrt()) as f32;
        let mut value = || match shape.len() {
            1 => f32::from(u8::from(name.ends_with("weight"))),
            _ => {
                // The sum of 12 bytes is approximately normal.
                let sum: u32 = (0..12).map(|_| next_random(&mut state, 8)).sum();
                (sum as f32 - 1530.0) / 256.0 * deviation
            }
        };
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| value()).collect();
        net.write(*tensor, &values, Stream::DEFAULT)?;
    }

    let mut matrices = mpcore::ParamGroup::new(mpcore::OptimizerKind::Adam, 0.01)
        .with_schedule(LrSchedule::Cosine);
    matrices.beta2 = 0.95;
    matrices.weight_decay = 0.1;
    matrices.warmup_steps = (steps / 10) as i32;
    matrices.decay_steps = (steps - steps / 10) as i32;
    matrices.lr_end = matrices.lr / 10.0;
    let mut vectors = matrices;
    vectors.weight_decay = 0.0;
    let group_of: Vec<u32> = parameters.iter().map(|p| u32::from(p.1.len() == 1)).collect();
    let adamw = net
        .optimizer(mpcore::OptimizerKind::Adam)?
        .flags(mpcore::OptimizerFlags::DECOUPLED_DECAY)
        .group(matrices)
        .group(vectors)
        .tensor_group(&group_of)
        .build()?;
    let scaler = Scaler::new(&context, &ScalerConfig::for_autocast(low)?)?;
    let batch = [context.alloc(BATCH * LENGTH)?, context.alloc(BATCH * LENGTH)?];
    net.bind(tokens, &batch[0])?;
    net.bind(labels, &batch[1])?;
    let options = StepOptions { max_grad_norm: 1.0, ..StepOptions::default() };
    for step in 1..=steps {
        let mut state = step.wrapping_mul(2_654_435_761);
        let mut first = || {
            let high = u64::from(next_random(&mut state, 24)) << 24;
            (high | u64::from(next_random(&mut state, 24))) as usize % (text.len() - LENGTH)
        };
        let rows: Vec<usize> = (0..BATCH).map(|_| first()).collect();
        for (shift, to) in batch.iter().enumerate() {
            let sequences = rows.iter().flat_map(|&i| &text[i + shift..i + shift + LENGTH]);
            to.copy_from(&sequences.copied().collect::<Vec<i32>>())?;
        }
        net.forward(GraphMode::Training, Stream::DEFAULT)?;
        net.backward(Some(&scaler), Stream::DEFAULT)?;
        adamw.scale_step(Some(&scaler), &options, Stream::DEFAULT)?;
    }
    println!("step {steps}  loss {:.4}", net.data::<f32>(loss)?.to_vec()?[0]);

    // FNV-1a hash of the weights.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for (_, _, tensor) in &parameters {
        for byte in net.data::<f32>(*tensor)?.to_vec()?.iter().flat_map(|x| x.to_ne_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    println!("weights {hash:016x}");
    Ok(())
}
