//! Ownership: objects fit into one struct, own the objects that they use, and are Send.

mod common;

use common::{context, list, plain_sgd, refused};
use mpcore::*;
use std::thread;

const STREAM: Stream = Stream::DEFAULT;

/// Every object of a training program.  The context is dropped first.
struct Trainer {
    context: Context,
    network: Network,
    optimizer: Optimizer,
    scaler: Scaler,
    m: TensorList,
    w: TensorId,
}

fn trainer() -> Result<Trainer> {
    let context = context();
    let mut n = Network::builder(&context)?;
    let (x, labels) = (n.input("x", Dtype::Fp32, &[1, 2])?, n.input("y", Dtype::DtypeNone, &[1])?);
    let w = n.parameter("w", &[2, 2])?;
    let logits = n.node("Linear", "fc", &[x, w]).output()?;
    let loss = n.node("SoftmaxXent", "loss", &[logits, labels]).output()?;
    n.loss(loss)?;
    let mut network = n.compile()?;
    network.bind(x, &context.upload(&[1.0f32, 2.0])?)?;
    network.bind(labels, &context.upload(&[0])?)?;
    let m = TensorList::new(&context, &[Tensor::new(&context.alloc::<f32>(4)?)])?;
    let mut group = ParamGroup::new(OptimizerKind::Sgd, 1.0);
    group.beta1 = 0.5;
    let optimizer = network.optimizer(OptimizerKind::Sgd)?.m(&m).group(group).build()?;
    let scaler = Scaler::new(&context, &ScalerConfig::new(ScalerPolicy::Backoff))?;
    Ok(Trainer { context, network, optimizer, scaler, m, w })
}

#[test]
fn struct_of_all_objects_trains_in_another_thread() {
    let trainer = trainer().unwrap();
    let trainer = thread::spawn(move || {
        let t = trainer;
        t.network.forward(GraphMode::Training, STREAM).unwrap();
        t.network.backward(Some(&t.scaler), STREAM).unwrap();
        t.optimizer.scale_step(Some(&t.scaler), &StepOptions::default(), STREAM).unwrap();
        t
    });
    let t = trainer.join().unwrap();
    let w = t.network.data::<f32>(t.w).unwrap().to_vec().unwrap();
    assert_eq!(w, [0.5, -0.5, 1.0, -1.0]);
    let norm = t.context.alloc::<f32>(1).unwrap();
    t.m.l2norm(Some(&norm.slice(0, 1)), None, STREAM).unwrap();
    assert_eq!(norm.to_vec().unwrap(), [2.5f32.sqrt()]);
}

#[test]
fn optimizer_outlives_its_network_lists_and_buffers() {
    let c = context();
    let (optimizer, w) = {
        let (w, g) = (c.upload(&[1.0f32]).unwrap(), c.upload(&[0.25f32]).unwrap());
        let (master, grads) = (list(&c, &w), list(&c, &g));
        let ones = c.upload(&[2.0f32]).unwrap();
        let builder = Optimizer::builder(&c, OptimizerKind::Sgd, &grads, &master);
        (builder.lr_multipliers(&ones).group(plain_sgd(1.0)).build().unwrap(), w)
    };
    optimizer.step(None, None, STREAM).unwrap();
    assert_eq!(w.to_vec().unwrap(), [0.5]);
    let Trainer { network, optimizer, .. } = trainer().unwrap();
    drop(network);
    optimizer.step(None, None, STREAM).unwrap();
    assert_eq!(optimizer.get_step(STREAM).unwrap(), 1);
}

#[test]
fn context_outlives_its_objects() {
    let buffer = context().upload(&[7i32]).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [7]);
    let view = |b: &DeviceBuffer<i32>| b.slice(0, 1).to_vec();
    assert_eq!(view(&buffer).unwrap(), [7]);
}

#[test]
fn set_data_is_visible_to_the_optimizer_of_a_list() {
    let c = context();
    let w = c.upload(&[8.0f32]).unwrap();
    let master = list(&c, &w);
    let mut grads = list(&c, &c.upload(&[1.0f32]).unwrap());
    let sgd = Optimizer::builder(&c, OptimizerKind::Sgd, &grads, &master).group(plain_sgd(1.0));
    let sgd = sgd.build().unwrap();
    grads.set_data(&[Tensor::new(&c.upload(&[3.0f32]).unwrap())], STREAM).unwrap();
    sgd.step(None, None, STREAM).unwrap();
    assert_eq!(w.to_vec().unwrap(), [5.0]);
}

/// The norm of a buffer that another thread overwrites is that of the old or of the new elements.
#[test]
fn threads_that_share_memory_are_serialized() {
    const COUNT: usize = 1 << 18;
    const ROUNDS: usize = 200;
    let c = context();
    let buffer = c.upload(&vec![1.0f32; COUNT]).unwrap();
    let list = list(&c, &buffer);
    let writer = thread::spawn(move || {
        for round in 0..ROUNDS {
            buffer.copy_from(&vec![[2.0, 1.0][round % 2]; COUNT]).unwrap();
        }
    });
    let norm = c.alloc::<f32>(1).unwrap();
    for _ in 0..ROUNDS {
        list.l2norm(Some(&norm.slice(0, 1)), None, STREAM).unwrap();
        let norm = norm.to_vec().unwrap()[0];
        assert!(norm == 512.0 || norm == 1024.0, "{norm}");
    }
    writer.join().unwrap();
}

/// Counts that exceed the C types are rejected before any work.
#[test]
fn extreme_numbers_are_rejected() {
    let c = context();
    let d = c.upload(&[7.0f32; 4]).unwrap();
    let run = |gemm: Gemm<'_>| gemm.run(&d, &d, &d);
    let sentence = "mp_gemm: batch_count = -2147483648 is negative";
    refused(run(c.gemm(1, 1, 1).batch(1 << 31, 0, 0, 1)), sentence);
    let negative = |argument| format!("{argument} = -9223372036854775808 is negative");
    refused(run(c.gemm(1 << 63, 1, 1)), &negative("mp_gemm: m"));
    refused(run(c.gemm(1, 1 << 63, 1)), &negative("mp_gemm: n"));
    refused(run(c.gemm(1, 1, 1 << 63)), &negative("mp_gemm: k"));
    let minus_one = usize::MAX;
    refused(run(c.gemm(1, 1, 1).batch(2, minus_one, 0, 1)), "mp_gemm: stride_a = -1 is negative");
    let sentence = "mp_gemm: ld_a = -1 is smaller than k = 1 (op_a = N)";
    refused(run(c.gemm(2, 1, 1).ld(minus_one, 1, 1)), sentence);
    let (one, options) = (c.alloc::<i32>(1).unwrap(), OutputOptions::default());
    let xent = c.softmax_xent(1 << 63, 1).run(&d, &one, &d, Some(&d));
    refused(xent, &negative("mp_softmax_xent: rows"));
    let copy = c.pointwise(PointwiseOp::Copy, 1 << 63, 1).run(&d, &d);
    refused(copy, &negative("mp_pointwise: rows"));
    let sentence = "mp_pointwise: ld_b = -1 must be 0 or at least columns = 1";
    refused(c.pointwise(PointwiseOp::Add, 2, 1).b_with_ld(&d, minus_one).run(&d, &d), sentence);
    let embedding = c.embedding::<f32, f32>(1 << 63, 1, 1);
    refused(embedding, &negative("mp_embedding_workspace_size: num_indices"));
    let norm = BatchNorm::<f32>::new(&c, 1 << 63, 1, &BatchNormOptions::default());
    refused(norm, &negative("mp_batchnorm_workspace_size: rows"));
    let empty = c.conv2d([1, 1, 1, 0], [1, 1, 1, 1]).unwrap();
    let sentence = "mp_conv2d_get_output_size: c = 0 must be at least 1";
    refused(empty.wgrad(&d, &d, &d, &options), sentence);
    let group = c.gemm_grouped::<f32, f32>().product((1 << 63, 1, 1), &d, &d, &d).unwrap();
    refused(group.run(&options), &negative("mp_gemm_grouped: items[0].m"));
    assert_eq!(d.to_vec().unwrap(), [7.0; 4]);
}

/// A model list may have absent tensors; lists that an optimizer reads may not.
#[test]
fn absent_tensors_are_allowed_in_model_lists_only() {
    let c = context();
    let list = || list(&c, &c.upload(&[1.0f32]).unwrap());
    let (grads, master, m, extra) = (list(), list(), list(), list());
    let absent = TensorList::new(&c, &[Tensor::absent(1)]).unwrap();
    let build = |grads, master, m, extra| {
        let group = ParamGroup::new(OptimizerKind::Sgd, 1.0);
        let builder = Optimizer::builder(&c, OptimizerKind::Sgd, grads, master).group(group);
        builder.m(m).extra_grads(extra).build()
    };
    build(&grads, &master, &m, &extra).unwrap();
    let no = |name| format!("mp_optimizer_create: {name}: data[0] = NULL, but numel[0] = 1");
    refused(build(&absent, &master, &m, &extra), &no("grads"));
    refused(build(&grads, &absent, &m, &extra), &no("master"));
    refused(build(&grads, &master, &absent, &extra), &no("m"));
    refused(build(&grads, &master, &m, &absent), &no("extra_grads"));
    let adam = Optimizer::builder(&c, OptimizerKind::Adam, &grads, &master);
    refused(adam.group(ParamGroup::new(OptimizerKind::Adam, 1.0)).v(&absent).build(), &no("v"));
    let foreign = TensorList::new(&context(), &[Tensor::absent(1)]).unwrap();
    let sentence = "Optimizer: m belongs to another context";
    refused(build(&grads, &master, &foreign, &extra), sentence);
}

#[test]
fn objects_are_send() {
    fn send<T: Send + 'static>() {}
    send::<Context>();
    send::<DeviceBuffer<F16>>();
    send::<TensorList>();
    send::<Scaler>();
    send::<Optimizer>();
    send::<Network>();
    send::<Autocast>();
    send::<Conv2d>();
    send::<Pool2d>();
    send::<BatchNorm<F16>>();
    send::<Embedding<F16, f32>>();
    send::<Rnn<F16, f32>>();
    send::<Matrices<F16>>();
}
