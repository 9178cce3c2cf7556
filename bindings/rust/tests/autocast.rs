//! Autocast: rewrites of small graphs, reasons, and errors.

mod common;

use common::refused;
use mpcore::*;

const FP32: Dtype = Dtype::Fp32;
const FP16: Dtype = Dtype::Fp16;

fn config() -> AutocastConfig {
    AutocastConfig::new(FP16).with_flags(AutocastFlags::NO_ENVIRONMENT)
}

fn policy() -> Autocast {
    Autocast::new(&config()).unwrap()
}

fn parameter() -> GraphTensor {
    GraphTensor { role: TensorRole::Parameter, ..FP32.into() }
}

/// A graph with a node for each property that decides a type.
fn network() -> Graph {
    let mut g = Graph::new();
    let x = g.tensor(FP32);
    let (w1, gain, w2) = (g.tensor(parameter()), g.tensor(parameter()), g.tensor(parameter()));
    let y = g.node("Conv2D", "conv1", &[x, w1]).unwrap().depth(575).output(FP32);
    let norm = g.node("BatchNorm", "norm", &[y]).unwrap();
    let y = norm.input(gain, SLOT_FP32).input(None, SLOT_FP32).output(FP32);
    let y = g.node("Relu", "relu", &[y]).unwrap().output(FP32);
    let y = g.node("Conv2D", "conv2", &[y, w2]).unwrap().output(FP32);
    let mut node = g.node("Exp", "exp", &[y]).unwrap();
    let exp = node.id();
    node.output(GraphTensor { role: TensorRole::Output, ..FP32.into() });
    g.node("MatMul", "", &[x, x]).unwrap().depth(576).output(FP32);
    let large = g.tensor(GraphTensor { amax: Some(1001.0), ..FP32.into() });
    g.node("MatMul", "", &[large, x]).unwrap().output(FP32);
    g.node("MatMul", "", &[x, x]).unwrap().flags(NodeFlags::KEEP_FP32).output(FP32);
    g.node("Mine", "", &[x]).unwrap().class(OpClass::Allow).output(FP32);
    let back = g.tensor(FP32); // read before the node that writes it is added
    let mut node = g.node("MatMul", "", &[x, back]).unwrap();
    let (merge, y) = (node.id(), node.output(FP32));
    let next = g.node("TensorListGetItem", "", &[y]).unwrap().writes(back).id();
    g.cluster(ClusterKind::Container, &[merge, next]);
    let mut node = g.node("MatMul", "", &[x, x]).unwrap();
    let (first, _) = (node.id(), node.output(FP32));
    let mut node = g.node("TensorListGetItem", "", &[x]).unwrap();
    let (second, _) = (node.id(), node.output(FP32));
    g.cluster(ClusterKind::Loop, &[first, second]);
    let y = g.node("MatMul", "", &[x, x]).unwrap().output(FP32);
    let mut node = g.node("Tanh", "", &[y]).unwrap();
    let (pulled, y) = (node.id(), node.output(FP32));
    g.hidden_edge(exp, pulled);
    let mut last = g.node("MatMul", "", &[y]).unwrap().input(None, 0);
    last.output(GraphTensor { slot: SLOT_FP32, ..FP32.into() });
    last.output(Dtype::DtypeNone);
    assert_eq!((last.id().index(), y.index()), (15, 19));
    g
}

/// Type, reason and causing node of each node.
fn nodes(rewritten: &Rewritten) -> Vec<(Dtype, AutocastReason, Option<usize>)> {
    let node = |n: &RewrittenNode| (n.dtype, n.reason.unwrap(), n.cause.map(NodeId::index));
    rewritten.nodes.iter().map(node).collect()
}

/// Tensor, type, kind and number of readers of each cast.
fn casts(rewritten: &Rewritten) -> Vec<(usize, Dtype, CastKind, usize)> {
    let cast = |c: &GraphCast| {
        assert_ne!(c.from, c.to);
        (c.tensor.index(), c.to, c.kind.unwrap(), c.readers)
    };
    rewritten.casts.iter().map(cast).collect()
}

#[test]
fn every_property_of_a_graph_decides_types() {
    use AutocastReason::*;
    let limited = AutocastConfig { amax_limit: 1000.0, depth_limit: 575, ..config() };
    let (policy, graph) = (Autocast::new(&limited).unwrap(), network());
    let r = policy.rewrite(None, &graph).unwrap();
    let (f, h) = (FP32, FP16);
    let wanted = [
        (h, AllowList, None),
        (h, BetweenAllow, Some(3)),
        (h, BetweenAllow, Some(3)),
        (h, AllowList, None),
        (f, DenyList, None),
        (f, Depth, None),
        (f, Range, None),
        (f, Kept, None),
        (h, AllowList, None),
        (h, AllowList, None),
        (h, ClusterLow, Some(9)),
        (f, ClusterFp32, Some(12)),
        (f, NoAllowNearby, None),
        (h, AllowList, None),
        (f, DenyUpstream, Some(4)),
        (h, AllowList, None),
    ];
    assert_eq!(nodes(&r), wanted);
    let of_tensors = [f, f, f, f, h, h, h, h, f, f, f, f, f, h, h, h, f, f, h, f, f];
    assert_eq!((&r.tensors[..21], r.tensors[21]), (&of_tensors[..], Dtype::DtypeNone));
    let wanted = [
        (0, h, CastKind::Kernel, 5),
        (1, h, CastKind::ModelCopy, 1),
        (3, h, CastKind::ModelCopy, 1),
        (7, f, CastKind::Kernel, 1),
        (18, f, CastKind::Kernel, 1),
        (19, h, CastKind::Kernel, 1),
    ];
    assert_eq!(casts(&r), wanted);
    let read: Vec<_> = r.nodes.iter().map(|node| node.input_casts.clone()).collect();
    assert_eq!(read[0], [Some(0), Some(1)]);
    assert_eq!(read[1], [None; 3]);
    assert_eq!(read[3..5], [vec![None, Some(2)], vec![Some(3)]]);
    assert_eq!(read[14..], [vec![Some(4)], vec![Some(5), None]]);
    assert_eq!((r.num_low_nodes, r.num_parameters_low, r.disabled_reason()), (9, 2, None));

    let text = policy.explain(&graph, &r, AutocastFormat::Text).unwrap();
    assert!(text.contains("norm   BatchNorm          fp16  between conv1 and conv2\n"), "{text}");
    assert!(
        text.contains("#6     MatMul             fp32  a tensor exceeds amax_limit\n"),
        "{text}"
    );
    let json = policy.explain(&graph, &r, AutocastFormat::Json).unwrap();
    assert!(json.contains("\"num_low_nodes\": 9"), "{json}");

    let empty = policy.rewrite(None, &Graph::new()).unwrap();
    assert!(empty.nodes.is_empty() && empty.tensors.is_empty() && empty.casts.is_empty());
}

#[test]
fn configuration_selects_preset_level_and_flags() {
    let rewritten = |config| Autocast::new(&config).unwrap().rewrite(None, &network()).unwrap();
    let r = rewritten(config().with_preset(AutocastPreset::Onnx));
    assert_eq!(nodes(&r)[0], (FP32, AutocastReason::Unlisted, None));
    let r = rewritten(config().with_level(AutocastLevel::TensorCoresOnly));
    assert_eq!(nodes(&r)[1].1, AutocastReason::Unlisted);
    let emulated = config().with_flags(AutocastFlags::EMULATE);
    assert_eq!(emulated.flags, (AutocastFlags::EMULATE | AutocastFlags::NO_ENVIRONMENT).bits());
    let r = rewritten(emulated);
    assert!(r.tensors[..21].iter().all(|&dtype| dtype == FP32) && r.nodes[0].dtype == FP16);
    assert!(r.casts.len() > r.tensors.len());
    let of_relu = r.casts[r.nodes[2].input_casts[0].unwrap()];
    assert_eq!((of_relu.from, of_relu.to), (FP16, FP32));

    assert_eq!(ScalerConfig::for_autocast(FP16).unwrap().init_scale, 32768.0);
    assert_eq!(ScalerConfig::for_autocast(Dtype::Bf16).unwrap().init_scale, 1.0);
    let wrong = Autocast::new(&AutocastConfig { depth_limit: -1, ..config() });
    refused(wrong, "mp_autocast_create: config->depth_limit = -1 is negative");
}

#[test]
fn classes_and_patterns_override_the_lists() {
    let mut policy = policy();
    assert_eq!(policy.class_of("Conv2D"), Some(OpClass::Allow));
    assert_eq!(policy.class_of("exp"), Some(OpClass::Deny));
    assert_eq!(policy.class_of("Nobody"), Some(OpClass::Unlisted));
    assert_eq!(policy.class_of("Conv2D\0"), None);
    policy.set_class(&["Nobody", "BatchNorm"], OpClass::Deny).unwrap();
    assert_eq!(policy.class_of("Nobody"), Some(OpClass::Deny));
    policy.set_nodes("*", OpClass::Unlisted).unwrap();
    policy.set_nodes("conv[!2]", OpClass::Allow).unwrap();
    policy.set_nodes("n*m", OpClass::Clear).unwrap();
    let r = policy.rewrite(None, &network()).unwrap();
    assert_eq!(
        nodes(&r)[..5],
        [
            (FP16, AutocastReason::Pattern, None),
            (FP16, AutocastReason::ClearNextToLow, Some(0)),
            (FP32, AutocastReason::Unlisted, None),
            (FP32, AutocastReason::Unlisted, None),
            (FP32, AutocastReason::Unlisted, None),
        ]
    );
    refused(
        policy.set_class(&["Exp"], OpClass::Allow),
        "mp_autocast_set_class: policy is in use and cannot be modified; create a new one",
    );
    let mut policy = self::policy();
    let sentence = "mp_autocast_set_nodes: pattern = conv[12 has an unmatched [";
    refused(policy.set_nodes("conv[12", OpClass::Allow), sentence);
    refused(policy.set_nodes("\0", OpClass::Allow), "pattern contains a NUL");
    refused(policy.set_class(&["Exp", "\0"], OpClass::Allow), "op_types contains a NUL");
    assert_eq!(policy.class_of("Exp"), Some(OpClass::Deny));
}

#[test]
fn invalid_graphs_are_rejected() {
    let mut g = Graph::new();
    refused(g.node("Mat\0Mul", "fc1", &[]), "op contains a NUL");
    refused(g.node("MatMul", "\0", &[]), "name contains a NUL");
    assert_eq!((g.num_nodes(), g.num_tensors()), (0, 0));
    g.node("MatMul", "fc1", &[]).unwrap().flags(NodeFlags::from_bits(u32::MAX));
    let sentence = "mp_autocast_rewrite: graph->node_flags[0] = 65535 has unknown bits";
    refused(policy().rewrite(None, &g), sentence);
}

#[test]
fn slow_device_disables_the_rewrite() {
    let host = Context::new(Device::Host).unwrap();
    let because = "16-bit arithmetic is not faster on the CPU";
    let (policy, graph) = (policy(), network());
    assert_eq!(policy.disabled_reason(None).unwrap(), None);
    assert_eq!(policy.disabled_reason(Some(&host)).unwrap().as_deref(), Some(because));
    let r = policy.rewrite(Some(&host), &graph).unwrap();
    assert_eq!(r.disabled_reason().as_deref(), Some(because));
    assert_eq!((r.casts.len(), r.num_low_nodes), (0, 0));
    assert_eq!(nodes(&r), [(FP32, AutocastReason::Disabled, None); 16]);
    drop(host); // the reason is in static storage
    let text = policy.explain(&graph, &r, AutocastFormat::Text).unwrap();
    assert!(text.ends_with(&format!("the rewrite is disabled: {because}\n")), "{text}");

    let open = Autocast::new(&config().with_flags(AutocastFlags::IGNORE_PERFORMANCE)).unwrap();
    assert_eq!(open.disabled_reason(Some(&Context::new(Device::Host).unwrap())).unwrap(), None);
}

#[test]
fn op_returns_the_types_of_one_operation() {
    let policy = policy();
    let (cast_to, output) = policy.op("MatMul", &[FP32, FP16, Dtype::DtypeNone]).unwrap();
    assert_eq!((cast_to, output), (vec![Some(FP16), None, None], Some(FP16)));
    let (cast_to, output) = policy.op("Exp", &[FP16]).unwrap();
    assert_eq!((cast_to, output), (vec![Some(FP32)], Some(FP32)));
    let (cast_to, output) = policy.op("Add", &[FP16, FP32]).unwrap();
    assert_eq!((cast_to, output), (vec![Some(FP32), None], Some(FP32)));
    assert_eq!(policy.op("Range", &[]).unwrap(), (vec![], None));
    refused(policy.op("\0", &[]), "op_type contains a NUL");

    let torch = AutocastConfig { preset: AutocastPreset::Pytorch as u32, ..config() };
    let banned = Autocast::new(&torch).unwrap().op("binary_cross_entropy", &[FP16, FP16]);
    let error = banned.unwrap_err();
    assert_eq!(error.status(), Some(Status::ErrorUnsupported));
    assert!(error.to_string().ends_with("use binary_cross_entropy_with_logits"), "{error}");
}

#[test]
fn threads_share_a_policy() {
    let (policy, graph) = (policy(), network());
    let report = || {
        let r = policy.rewrite(None, &graph).unwrap();
        let text = policy.explain(&graph, &r, AutocastFormat::Text).unwrap();
        (r, text)
    };
    let [first, second] = std::thread::scope(|scope| {
        [scope.spawn(report), scope.spawn(report)].map(|thread| thread.join().unwrap())
    });
    assert_eq!(first, second);
    assert_eq!(first, report());
}
