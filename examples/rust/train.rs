//! `examples/c/train.c` in Rust: the same network on the same data.  On the host target both print
//! the same hash of the weights.
//!
//!     cargo run --example train -- [host|auto]
//!
//! The network is logits = relu(x w1 + b1) w2.  Weights, activations and gradients are fp16, master
//! weights and optimizer state fp32.  To show skipped steps, the scaler grows after every 8 clean
//! steps until gradients overflow, and one sample of step 33 is broken.

use mpcore::{
    Activation, Context, Device, Optimizer, Result, Scaler, ScalerConfig, ScalerPolicy,
    StepOptions, Stream, Tensor, TensorList, F16,
};

const BATCH: usize = 32;
const IN: usize = 24;
const HIDDEN: usize = 32;
const CLASSES: usize = 8;
const STEPS: usize = 120;
const BROKEN_STEP: usize = 33;

/// Linear congruential generator.
struct Random(u32);

impl Random {
    /// Returns the upper 8 bits, -128 to 127.
    fn next(&mut self) -> i32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 24) as i32 - 128
    }
}

fn to_f16(values: &[f32]) -> Vec<F16> {
    values.iter().map(|&x| F16::from_f32(x)).collect()
}

/// Returns samples and labels.  A sample is noise around the center of its class, in multiples of
/// 2^-6, which are exact in fp16.
fn batch(random: &mut Random, step: usize) -> (Vec<F16>, Vec<i32>) {
    let (mut x, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..BATCH {
        let label = (random.next() + 128) % CLASSES as i32;
        let mut center = Random(label as u32);
        labels.push(label);
        x.extend((0..IN).map(|_| (center.next() + random.next()) as f32 / 64.0));
    }
    if step == BROKEN_STEP {
        x[0] = 1e6; // infinity in fp16
    }
    (to_f16(&x), labels)
}

fn main() -> Result<()> {
    let on_host = std::env::args().nth(1).as_deref() == Some("host");
    let c = Context::new(if on_host { Device::Host } else { Device::Auto })?;

    let mut random = Random(1);
    let mut weights =
        |count: usize| -> Vec<f32> { (0..count).map(|_| random.next() as f32 / 512.0).collect() };
    let start = [weights(IN * HIDDEN), vec![0.0; HIDDEN], weights(HIDDEN * CLASSES)];

    let [w1, b1, w2] = [0, 1, 2].map(|i: usize| c.upload(&start[i]));
    let (w1, b1, w2) = (w1?, b1?, w2?);
    let [half_w1, half_b1, half_w2] = [0, 1, 2].map(|i: usize| c.upload(&to_f16(&start[i])));
    let (half_w1, half_b1, half_w2) = (half_w1?, half_b1?, half_w2?);
    let (dw1, dw2) = (c.alloc::<F16>(IN * HIDDEN)?, c.alloc::<F16>(HIDDEN * CLASSES)?);
    let db1 = c.alloc::<f32>(HIDDEN)?; // computed by an epilogue, in fp32

    let x = c.alloc::<F16>(BATCH * IN)?;
    let (h, dh) = (c.alloc::<F16>(BATCH * HIDDEN)?, c.alloc::<F16>(BATCH * HIDDEN)?);
    let logits = c.alloc::<F16>(BATCH * CLASSES)?;
    let labels = c.alloc::<i32>(BATCH)?;
    let (row_loss, loss) = (c.alloc::<f32>(BATCH)?, c.alloc::<f32>(1)?);

    let master = TensorList::new(&c, &[Tensor::new(&w1), Tensor::new(&b1), Tensor::new(&w2)])?;
    let grads = TensorList::new(&c, &[Tensor::new(&dw1), Tensor::new(&db1), Tensor::new(&dw2)])?;
    let halves = [Tensor::new(&half_w1), Tensor::new(&half_b1), Tensor::new(&half_w2)];
    let model = TensorList::new(&c, &halves)?;

    let adamw = Optimizer::named(&c, "adamw", 0.015625, &grads, &master)?
        .model(&model)
        .change(|group| group.weight_decay = 0.0078125)
        .build()?; // allocates the moments
    let mut config = ScalerConfig::new(ScalerPolicy::Backoff);
    config.growth_interval = 8;
    let scaler = Scaler::new(&c, &config)?;
    let options = StepOptions { max_grad_norm: 1.0, ..Default::default() };

    for step in 1..=STEPS {
        let (new_x, new_labels) = batch(&mut random, step);
        x.copy_from(&new_x)?;
        labels.copy_from(&new_labels)?;

        c.gemm(BATCH, HIDDEN, IN)
            .bias(&half_b1)
            .activation(Activation::Relu)
            .run(&x, &half_w1, &h)?;
        c.gemm(BATCH, CLASSES, HIDDEN).run(&h, &half_w2, &logits)?;

        // Computes the loss and replaces the logits with their gradient times S.
        c.softmax_xent(BATCH, CLASSES).loss_scale(&scaler.scale()).loss(&loss).run(
            &logits,
            &labels,
            &row_loss,
            Some(&logits),
        )?;

        c.gemm(HIDDEN, CLASSES, BATCH).transpose_a().run(&h, &logits, &dw2)?;
        c.gemm(BATCH, HIDDEN, CLASSES)
            .transpose_b()
            .activation(Activation::Drelu)
            .aux(&h) // relu'(z) = relu'(relu(z)), so z is not stored
            .dbias(&db1)
            .found_inf(&scaler.found_inf())
            .run(&logits, &half_w2, &dh)?;
        c.gemm(IN, HIDDEN, BATCH).transpose_a().run(&x, &dh, &dw1)?;

        adamw.scale_step(Some(&scaler), &options, Stream::DEFAULT)?;

        if step % 10 == 0 {
            // The host waits only here.
            let state = scaler.state(Stream::DEFAULT)?;
            let loss = loss.to_vec()?[0];
            println!(
                "step {step:3}  loss {loss:.4}  scale {}  skipped {}",
                state.scale, state.skipped
            );
        }
    }

    // FNV-1a hash of the bytes of the master weights.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for tensor in [&w1, &b1, &w2] {
        for byte in tensor.to_vec()?.iter().flat_map(|x| x.to_ne_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    println!("weights {hash:016x}");
    Ok(())
}
