//! Networks: a perceptron trained in f32 and in mixed precision, and errors.

mod common;

use common::{context, refused, target};
use mpcore::*;

const STREAM: Stream = Stream::DEFAULT;
const BATCH: usize = 16;
const IN: usize = 8;
const HIDDEN: usize = 16;
const CLASSES: usize = 4;
const STEPS: usize = 20;

/// Multiples of step that every type represents.
fn numbers(count: usize, seed: usize, step: f32) -> Vec<f32> {
    (0..count).map(|i| (((i * 7 + i / 3 + seed * 5) % 9) as f32 - 4.0) * step).collect()
}

fn policy(low: Dtype) -> Autocast {
    let flags = AutocastFlags::NO_ENVIRONMENT | AutocastFlags::IGNORE_PERFORMANCE;
    Autocast::new(&AutocastConfig::new(low).with_flags(flags)).unwrap()
}

/// Tensors of the perceptron.
struct Tensors {
    x: TensorId,
    labels: TensorId,
    w1: TensorId,
    w2: TensorId,
    relu: TensorId,
    logits: TensorId,
    loss: TensorId,
    row_loss: TensorId,
    correct: TensorId,
}

/// Linear, ReLU, Linear, cross-entropy.
fn perceptron(n: &mut NetworkBuilder<'_>) -> Result<Tensors> {
    let x = n.input("x", Dtype::Fp32, &[BATCH, IN])?;
    let labels = n.input("labels", Dtype::DtypeNone, &[BATCH])?;
    let (w1, b1) = (n.parameter("w1", &[IN, HIDDEN])?, n.parameter("b1", &[HIDDEN])?);
    let (w2, b2) = (n.parameter("w2", &[CLASSES, HIDDEN])?, n.parameter("b2", &[CLASSES])?);
    let fc1 = n.node("Linear", "fc1", &[x, w1, b1]).output()?;
    let relu = n.node("Relu", "relu", &[fc1]).output()?;
    let logits = n.node("Linear", "fc2", &[relu, w2, b2]).attribute("transposed", 1).output()?;
    let [loss, row_loss, correct] = n.node("SoftmaxXent", "loss", &[logits, labels]).outputs()?;
    n.output(logits)?;
    n.keep_gradient(relu)?;
    n.loss(loss)?;
    Ok(Tensors { x, labels, w1, w2, relu, logits, loss, row_loss, correct })
}

fn labels() -> Vec<i32> {
    (0..BATCH).map(|i| (i % CLASSES) as i32).collect()
}

fn start(network: &Network, t: &Tensors) {
    network.write(t.w1, &numbers(IN * HIDDEN, 2, 0.0625), STREAM).unwrap();
    network.write(t.w2, &numbers(HIDDEN * CLASSES, 3, 0.0625), STREAM).unwrap();
}

fn learns(low: Dtype) {
    let (c, policy) = (context(), policy(if low == Dtype::Fp32 { Dtype::Fp16 } else { low }));
    let x = c.upload(&numbers(BATCH * IN, 1, 0.5)).unwrap();
    let classes = c.upload(&labels()).unwrap();
    let mut builder = Network::builder(&c).unwrap();
    let t = perceptron(&mut builder).unwrap();
    if low != Dtype::Fp32 {
        builder.autocast(&policy).unwrap();
        builder.measure_kernels(0).unwrap();
    }
    let mut network = builder.compile().unwrap();
    start(&network, &t);
    network.bind(t.x, &x).unwrap();
    network.bind(t.labels, classes.slice(0, BATCH)).unwrap();

    let sgd = network.optimizer_named("sgd", 0.25).unwrap();
    let sgd = sgd.change(|group| group.beta1 = 0.0).build().unwrap();
    let scaler = Scaler::new(&c, &ScalerConfig::for_autocast(low).unwrap()).unwrap();
    let mut losses = Vec::new();
    for _ in 0..STEPS {
        network.forward(GraphMode::Training, STREAM).unwrap();
        network.backward(Some(&scaler), STREAM).unwrap();
        sgd.scale_step(Some(&scaler), &StepOptions::default(), STREAM).unwrap();
        losses.push(network.data::<f32>(t.loss).unwrap().to_vec().unwrap()[0]);
    }
    assert!(losses[0] > 1.2 && losses[STEPS - 1] < losses[0] - 0.1, "{losses:?}");
    assert_eq!(sgd.get_step(STREAM).unwrap(), STEPS as i64);

    let w1 = network.tensor(t.w1).unwrap();
    assert_eq!((w1.name.as_str(), w1.dtype, w1.shape), ("w1", Dtype::Fp32, vec![IN, HIDDEN]));
    assert_eq!((network.master().len(), network.grads().unwrap().len()), (4, 4));
    let described = network.describe().unwrap();
    assert!(described.contains("fc1, relu  mp_gemm"), "{described}");
    let memory = network.memory().unwrap();
    assert!(memory.parameters >= 4 * (IN * HIDDEN + HIDDEN * CLASSES) as i64);
    if low == Dtype::Fp32 {
        assert!(network.model().is_none() && w1.dtype_copy.is_none() && memory.copies == 0);
        refused(network.copy::<F16>(t.w1), "copy: w1 has no copy");
        return;
    }
    assert_eq!((w1.dtype_copy, w1.dtype_grad), (Some(low), Some(low)));
    assert!(memory.copies > 0);
    assert_eq!(network.model().unwrap().len(), 4);
    assert_eq!(network.tensor(t.relu).unwrap().dtype_grad, Some(low));
    let explained = network.explain(AutocastFormat::Text).unwrap();
    assert!(explained.contains("fc1/grad_w"), "{explained}");
    assert!(network.explain(AutocastFormat::Dot).unwrap().starts_with("digraph"));
    let masters = network.data::<f32>(t.w1).unwrap().to_vec().unwrap();
    let copies = network.copy::<F16>(t.w1).unwrap().to_vec().unwrap();
    let rounded: Vec<_> = masters.into_iter().map(F16::from_f32).collect();
    assert_eq!(copies, rounded, "the optimizer writes both");
    refused(network.grad::<f32>(t.w1), "grad: tensor 2 has type F16, not f32");
    assert!(network.grad::<F16>(t.relu).unwrap().to_vec().unwrap().len() == BATCH * HIDDEN);
}

#[test]
fn f32_learns() {
    learns(Dtype::Fp32);
}

#[test]
fn fp16_learns() {
    learns(Dtype::Fp16);
}

#[test]
fn slow_device_leaves_the_network_in_f32() {
    let c = context();
    let config = AutocastConfig::new(Dtype::Fp16).with_flags(AutocastFlags::NO_ENVIRONMENT);
    let policy = Autocast::new(&config).unwrap();
    let mut builder = Network::builder(&c).unwrap();
    perceptron(&mut builder).unwrap();
    builder.autocast(&policy).unwrap();
    let network = builder.compile().unwrap();
    if target() == Target::Host {
        assert!(network.model().is_none());
        let explained = network.explain(AutocastFormat::Text).unwrap();
        assert!(explained.contains("16-bit arithmetic is not faster on the CPU"), "{explained}");
    }
}

/// The loss of a partial batch is the mean of its rows; the rows may begin anywhere in a buffer.
#[test]
fn loss_of_a_partial_batch() {
    let c = context();
    let x = c.upload(&numbers(BATCH * IN, 1, 0.5)).unwrap();
    let classes = c.upload(&labels()).unwrap();
    let mut builder = Network::builder(&c).unwrap();
    let t = perceptron(&mut builder).unwrap();
    let mut network = builder.compile().unwrap();
    start(&network, &t);
    network.bind(t.x, &x).unwrap();
    network.bind(t.labels, &classes).unwrap();
    network.forward(GraphMode::Inference, STREAM).unwrap();
    let rows = network.data::<f32>(t.row_loss).unwrap().to_vec().unwrap();

    let (first, count) = (11, 5);
    network.bind(t.x, x.slice(first * IN, count * IN)).unwrap();
    network.bind(t.labels, classes.slice(first, count)).unwrap();
    let sentence = "forward: x has 40 elements, but must have at least 128";
    refused(network.forward(GraphMode::Training, STREAM), sentence);
    network.set_batch(count).unwrap();
    network.forward(GraphMode::Inference, STREAM).unwrap();
    let loss = network.data::<f32>(t.loss).unwrap().to_vec().unwrap()[0];
    let mean = rows[first..].iter().sum::<f32>() / count as f32;
    assert!((loss - mean).abs() < 1e-6, "{loss} {mean}");
    assert_eq!(network.tensor(t.logits).unwrap().shape, [count, CLASSES]);
    assert!(network.data::<i64>(t.correct).unwrap().to_vec().unwrap()[0] <= count as i64);
    assert_eq!(network.data::<f32>(t.x).unwrap().to_vec().unwrap().len(), count * IN);

    network.unbind(t.labels).unwrap();
    network.forward(GraphMode::Inference, STREAM).unwrap();
}

#[test]
fn inference_with_states_reshape_and_dropout() {
    let c = context();
    let values: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let (x, ones) = (c.upload(&values).unwrap(), c.upload(&[1.0; 3]).unwrap());
    let (zero, labels) = (c.alloc::<i64>(1).unwrap(), c.alloc::<i32>(2).unwrap());
    let mut n = Network::builder(&c).unwrap();
    let input = n.input("x", Dtype::Fp32, &[2, 6]).unwrap();
    let offset = n.input("offset", Dtype::DtypeNone, &[]).unwrap();
    let (mean, variance) = (n.state("mean", &[3]).unwrap(), n.state("variance", &[3]).unwrap());
    let (gamma, beta) = (n.parameter("gamma", &[3]).unwrap(), n.parameter("beta", &[3]).unwrap());
    let turned = n.node("Reshape", "turned", &[input]).attribute("extent", [0, 2, -1]);
    let turned = turned.output().unwrap();
    assert_eq!(n.tensor(turned).unwrap().shape, [2, 2, 3]);
    let norm = n.node("BatchNorm", "norm", &[turned, gamma, beta, mean, variance]);
    let norm = norm.attribute("epsilon", 0.0).output().unwrap();
    let y = n.node("Dropout", "dropped", &[norm]).input(offset).attribute("p", 0.25).output();
    let z = n.node("Dropout", "again", &[y.unwrap()]).input(None).output().unwrap();
    n.output(z).unwrap();
    let mut n = n.compile().unwrap();
    n.write(gamma, &[2.0; 3], STREAM).unwrap();
    n.write_from_device(beta, &ones, STREAM).unwrap();
    n.write(variance, &[4.0; 3], STREAM).unwrap();
    n.bind(input, &x).unwrap();
    refused(n.bind(offset, &labels), "bind: tensor 1 has type i64, not i32");
    n.bind(offset, &zero).unwrap();
    n.forward(GraphMode::Inference, STREAM).unwrap();
    let plus_one: Vec<_> = values.iter().map(|value| value + 1.0).collect();
    assert_eq!(n.data::<f32>(z).unwrap().to_vec().unwrap(), plus_one);
    assert_eq!(n.get_step(STREAM).unwrap(), 0);
    n.set_step(41, STREAM).unwrap();
    assert_eq!(n.get_step(STREAM).unwrap(), 41);
    assert!(n.grads().is_none() && n.master().len() == 2);
    let sentence = "optimizer: requires a loss; call loss before compile";
    refused(n.optimizer(OptimizerKind::Sgd), sentence);
    refused(n.optimizer_named("sgd", 1.0), "optimizer: requires a loss; call loss before compile");
}

#[test]
fn seeded_gradient_is_propagated() {
    let c = context();
    let mut n = Network::builder(&c).unwrap();
    let (x, w) = (n.input("x", Dtype::Fp32, &[2, 1]).unwrap(), n.parameter("w", &[1, 1]).unwrap());
    let y = n.node("Linear", "fc", &[x, w]).output().unwrap();
    let seed = n.seed_gradient(y).unwrap();
    let mut n = n.compile().unwrap();
    n.bind(x, &c.upload(&[1.0f32, 2.0]).unwrap()).unwrap();
    n.bind(seed, &c.upload(&[4.0f32, 10.0]).unwrap()).unwrap();
    n.forward(GraphMode::Training, STREAM).unwrap();
    n.backward(None, STREAM).unwrap();
    assert_eq!(n.grad::<f32>(w).unwrap().to_vec().unwrap(), [24.0]);
}

#[test]
fn invalid_descriptions_are_rejected() {
    let c = context();
    let mut n = Network::builder(&c).unwrap();
    let x = n.input("x", Dtype::Fp32, &[4, 8]).unwrap();
    let w = n.parameter("w", &[8, 6]).unwrap();
    refused(n.state("a\0", &[2]), "name contains a NUL");
    refused(n.node("Relu", "a\0", &[x]).output(), "name contains a NUL");
    let sentence = "mp_graph_add_node: num_outputs = 2, but Relu takes exactly 1";
    refused(n.node("Relu", "n", &[x]).outputs::<2>(), sentence);
    let sentence = "mp_graph_add_node: inputs[1] = -1 is outside [0, 2)";
    refused(n.node("Linear", "n", &[x]).input(None).output(), sentence);
    let unknown = n.node("Linear", "n", &[x, w]).attribute("stride", 2).output().unwrap_err();
    assert_eq!(unknown.status(), Some(Status::ErrorNotFound));
    let sentence = "mp_graph_add_node: node n: Linear: attribute stride is unknown";
    assert_eq!(unknown.to_string(), sentence);
    for (kind, value) in [
        ("FLOAT", Attribute::from(0.0)),
        ("INTS", vec![0_i64].into()),
        ("FLOATS", vec![0.5].into()),
    ] {
        let kind = format!("kind of transposed = MP_ATTRIBUTE_KIND_{kind}");
        let sentence =
            format!("mp_graph_add_node: node n: Linear: {kind}: must be MP_ATTRIBUTE_KIND_INT");
        refused(n.node("Linear", "n", &[x, w]).attribute("transposed", value).output(), &sentence);
    }
    n.node("Dropout", "seeded", &[x]).attribute("seed", u64::MAX).output().unwrap();
}

#[test]
fn invalid_calls_are_rejected() {
    let (c, other) = (context(), context());
    let (halves, elsewhere) = (c.alloc::<F16>(BATCH * IN).unwrap(), other.alloc::<f32>(9).unwrap());
    let mut builder = Network::builder(&c).unwrap();
    let t = perceptron(&mut builder).unwrap();
    let mut n = builder.compile().unwrap();
    refused(n.bind(t.w1, &halves), "bind: tensor 2 is not an input");
    refused(n.bind(t.x, &halves), "bind: tensor 0 has type f32, not F16");
    refused(n.bind(t.x, &elsewhere), "bind: data belongs to another context");
    refused(n.write(t.w1, &[1.0], STREAM), "write: w1 has 128 elements, not 1");
    let sentence = "write_from_device: values belongs to another context";
    refused(n.write_from_device(t.w1, &elsewhere, STREAM), sentence);
    let scaler = Scaler::new(&other, &ScalerConfig::new(ScalerPolicy::Static)).unwrap();
    let sentence = "backward: the scaler belongs to another context";
    refused(n.backward(Some(&scaler), STREAM), sentence);
    refused(n.data::<f32>(t.x), "data: x shares its memory with other tensors or is not computed");
    refused(n.data::<f32>(t.correct), "data: tensor 11 has type i64, not f32");
}
