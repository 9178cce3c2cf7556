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

/// Nodes: conv1, norm, relu, conv2, exp.  Tensors: x, w1, gain, w2 and the outputs of the nodes.
fn small_graph() -> Graph {
    let mut g = Graph::new();
    let x = g.tensor(FP32);
    let (w1, gain, w2) = (g.tensor(parameter()), g.tensor(parameter()), g.tensor(parameter()));
    let c1 = g.node("Conv2D", "conv1", &[x, w1]).unwrap().depth(576).output(FP32);
    let norm = g.node("BatchNorm", "norm", &[c1]).unwrap();
    let n = norm.input(gain, SLOT_FP32).input(None, SLOT_FP32).output(FP32);
    let r = g.node("Relu", "relu", &[n]).unwrap().output(FP32);
    let c2 = g.node("Conv2D", "conv2", &[r, w2]).unwrap().output(FP32);
    let out = GraphTensor { role: TensorRole::Output, ..FP32.into() };
    g.node("Exp", "exp", &[c2]).unwrap().output(out);
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
fn small_graph_is_rewritten() {
    let (policy, graph) = (policy(), small_graph());
    let r = policy.rewrite(None, &graph).unwrap();
    assert_eq!(r.tensors, [FP32, FP32, FP32, FP32, FP16, FP16, FP16, FP16, FP32]);
    assert_eq!(
        nodes(&r),
        [
            (FP16, AutocastReason::AllowList, None),
            (FP16, AutocastReason::BetweenAllow, Some(3)),
            (FP16, AutocastReason::BetweenAllow, Some(3)),
            (FP16, AutocastReason::AllowList, None),
            (FP32, AutocastReason::DenyList, None),
        ]
    );
    assert_eq!(
        casts(&r),
        [
            (0, FP16, CastKind::Kernel, 1),
            (1, FP16, CastKind::ModelCopy, 1),
            (3, FP16, CastKind::ModelCopy, 1),
            (7, FP32, CastKind::Kernel, 1),
        ]
    );
    let read: Vec<_> = r.nodes.iter().map(|node| node.input_casts.clone()).collect();
    assert_eq!(
        read,
        [
            vec![Some(0), Some(1)],
            vec![None, None, None],
            vec![None],
            vec![None, Some(2)],
            vec![Some(3)]
        ]
    );
    assert_eq!((r.num_low_nodes, r.num_parameters_low, r.disabled_reason()), (4, 2, None));

    let text = policy.explain(&graph, &r, AutocastFormat::Text).unwrap();
    assert!(text.contains("norm   BatchNorm  fp16  between conv1 and conv2\n"), "{text}");
    let json = policy.explain(&graph, &r, AutocastFormat::Json).unwrap();
    assert!(json.contains("\"num_low_nodes\": 4"), "{json}");
    let picture = policy.explain(&graph, &r, AutocastFormat::Dot).unwrap();
    assert!(picture.starts_with("digraph autocast {\n"), "{picture}");

    let empty = policy.rewrite(None, &Graph::new()).unwrap();
    assert!(empty.nodes.is_empty() && empty.tensors.is_empty() && empty.casts.is_empty());
}

#[test]
fn configuration_selects_type_preset_level_and_limits() {
    let bf16 = AutocastConfig { dtype_low: Dtype::Bf16 as u32, ..config() };
    let r = Autocast::new(&bf16).unwrap().rewrite(None, &small_graph()).unwrap();
    assert_eq!(r.nodes[0].dtype, Dtype::Bf16);
    let onnx = AutocastConfig { preset: AutocastPreset::Onnx as u32, ..config() };
    let r = Autocast::new(&onnx).unwrap().rewrite(None, &small_graph()).unwrap();
    assert_eq!(nodes(&r)[0], (FP32, AutocastReason::Unlisted, None));
    let level = AutocastLevel::TensorCoresOnly as u32;
    let r = Autocast::new(&AutocastConfig { level, ..config() }).unwrap();
    assert_eq!(nodes(&r.rewrite(None, &small_graph()).unwrap())[1].1, AutocastReason::Unlisted);
    let deep = AutocastConfig { depth_limit: 575, ..config() };
    let r = Autocast::new(&deep).unwrap().rewrite(None, &small_graph()).unwrap();
    assert_eq!(nodes(&r)[0], (FP32, AutocastReason::Depth, None));

    let emulated = Autocast::new(&config().with_flags(AutocastFlags::EMULATE)).unwrap();
    let r = emulated.rewrite(None, &small_graph()).unwrap();
    assert!(r.tensors.iter().all(|&dtype| dtype == FP32) && r.nodes[0].dtype == FP16);
    // To fp16: x, both filters, four outputs.  To fp32: the inputs of these nodes and of exp.
    assert_eq!(r.casts.len(), 7 + 7);
    let to_fp32 = r.nodes[2].input_casts[0].unwrap();
    assert_eq!((r.casts[to_fp32].from, r.casts[to_fp32].to), (FP16, FP32));

    assert_eq!(ScalerConfig::for_autocast(FP16).unwrap().init_scale, 32768.0);
    assert_eq!(ScalerConfig::for_autocast(Dtype::Bf16).unwrap().init_scale, 1.0);
    assert_eq!(ScalerConfig::for_autocast(FP32).unwrap().init_scale, 1.0);
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
    let r = policy.rewrite(None, &small_graph()).unwrap();
    assert_eq!(
        nodes(&r),
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
    refused(
        policy.set_nodes("conv[12", OpClass::Allow),
        "mp_autocast_set_nodes: pattern = conv[12 has an unmatched [",
    );
    refused(policy.set_nodes("\0", OpClass::Allow), "pattern contains a NUL");
    refused(policy.set_class(&["Exp", "\0"], OpClass::Allow), "op_types contains a NUL");
    assert_eq!(policy.class_of("Exp"), Some(OpClass::Deny));
}

/// A chain of products that differ in amax, flags, class and slots.
#[test]
fn properties_of_nodes_and_tensors_decide_their_types() {
    let mut g = Graph::new();
    let w = g.tensor(FP32);
    let x = g.tensor(GraphTensor { amax: Some(2000.0), ..FP32.into() });
    let y = g.node("MatMul", "", &[x, w]).unwrap().output(FP32);
    let y = g.node("MatMul", "", &[y, w]).unwrap().flags(NodeFlags::KEEP_FP32).output(FP32);
    let y = g.node("MatMul", "", &[y, w]).unwrap().class(OpClass::Unlisted).output(FP32);
    let last = g.node("MatMul", "", &[y, w]).unwrap().flags(NodeFlags::WRITES_EITHER);
    assert_eq!((last.id().index(), w.index()), (3, 0));
    let mut last = last.input(None, 0);
    last.output(GraphTensor { slot: SLOT_FP32, ..FP32.into() });
    last.output(Dtype::DtypeNone);
    let limited = AutocastConfig { amax_limit: 1000.0, ..config() };
    let policy = Autocast::new(&limited).unwrap();
    let r = policy.rewrite(None, &g).unwrap();
    assert_eq!(
        nodes(&r),
        [
            (FP32, AutocastReason::Range, None),
            (FP32, AutocastReason::Kept, None),
            (FP32, AutocastReason::Unlisted, None),
            (FP16, AutocastReason::AllowList, None),
        ]
    );
    assert_eq!(r.tensors[5..], [FP32, Dtype::DtypeNone]);
    let text = policy.explain(&g, &r, AutocastFormat::Text).unwrap();
    assert!(text.contains("#0  MatMul  fp32  a tensor exceeds amax_limit\n"), "{text}");
}

/// x -> MatMul -> Merge -> Relu -> NextIteration -> Merge; another MatMul reads the output of Relu.
#[test]
fn loop_runs_in_one_type() {
    for (kind, flags, low) in [
        (ClusterKind::Loop, NodeFlags::default(), true),
        (ClusterKind::Loop, NodeFlags::NO_LOW, false),
        (ClusterKind::Container, NodeFlags::NO_LOW, false),
    ] {
        let mut g = Graph::new();
        let (x, back) = (g.tensor(FP32), g.tensor(FP32));
        let x = g.node("MatMul", "before", &[x, x]).unwrap().output(FP32);
        let mut node = g.node("Merge", "merge", &[x, back]).unwrap();
        let (merge, x) = (node.id(), node.output(FP32));
        let x = g.node("Relu", "relu", &[x]).unwrap().output(FP32);
        let node = g.node("NextIteration", "next", &[x]).unwrap();
        let next = node.flags(NodeFlags::BACK_EDGE | flags).writes(back).id();
        g.node("MatMul", "behind", &[x, x]).unwrap().output(FP32);
        g.cluster(kind, &[merge, next]);
        let r = policy().rewrite(None, &g).unwrap();
        let dtype = if low { FP16 } else { FP32 };
        assert_eq!([r.nodes[1].dtype, r.nodes[3].dtype], [dtype; 2], "{kind:?} {flags:?}");
        assert_eq!(r.tensors[back.index()], dtype);
    }
}

/// exp appends to a list that tanh reads; only the hidden edge shows that.
#[test]
fn hidden_edge_propagates_deny() {
    for is_there in [false, true] {
        let mut g = Graph::new();
        let x = g.tensor(FP32);
        let mut node = g.node("Exp", "exp", &[x]).unwrap();
        let (exp, _) = (node.id(), node.output(FP32));
        let x = g.node("MatMul", "fc1", &[x, x]).unwrap().output(FP32);
        let mut node = g.node("Tanh", "tanh", &[x]).unwrap();
        let (tanh, x) = (node.id(), node.output(FP32));
        g.node("MatMul", "fc2", &[x, x]).unwrap().output(FP32);
        if is_there {
            g.hidden_edge(exp, tanh);
        }
        let wanted = if is_there {
            (FP32, AutocastReason::DenyUpstream, Some(0))
        } else {
            (FP16, AutocastReason::BetweenAllow, Some(3))
        };
        assert_eq!(nodes(&policy().rewrite(None, &g).unwrap())[2], wanted);
    }
}

#[test]
fn invalid_graphs_are_rejected() {
    let mut larger = Graph::new();
    let foreign = [0; 10].map(|_| larger.tensor(FP32))[9];
    let graph = |class: fn(GraphNode<'_>, TensorId) -> TensorId| {
        let mut g = Graph::new();
        let x = g.tensor(FP32);
        class(g.node("MatMul", "fc1", &[x, x]).unwrap(), foreign);
        g
    };
    let refused_graph = |graph: Graph, sentence: &str| {
        refused(policy().rewrite(None, &graph), &format!("mp_autocast_rewrite: {sentence}"));
        let good = policy().rewrite(None, &small_graph()).unwrap();
        let report = policy().explain(&graph, &good, AutocastFormat::Text);
        refused(report, &format!("mp_autocast_explain: {sentence}"));
    };
    refused_graph(
        graph(|node, foreign| node.input(foreign, 0).output(FP32)),
        "graph->input_tensor[2] = 9 is outside [-1, num_tensors = 2)",
    );
    refused_graph(
        graph(|node, _| node.depth(-3).output(FP32)),
        "graph->node_depth[0] = -3 is negative",
    );
    refused_graph(
        graph(|node, _| node.flags(NodeFlags::from_bits(u32::MAX)).output(FP32)),
        "graph->node_flags[0] = 65535 has unknown bits",
    );
    refused_graph(
        graph(|mut node, _| node.output(GraphTensor { slot: SLOT_FP32, ..FP16.into() })),
        "graph->tensor_slot[1] = 255 (MP_AUTOCAST_SLOT_FP32) requires an fp32 tensor, but tensor 1 is fp16",
    );
    let mut g = Graph::new();
    refused(g.node("Mat\0Mul", "fc1", &[]), "op contains a NUL");
    refused(g.node("MatMul", "\0", &[]), "name contains a NUL");
    assert_eq!((g.num_nodes(), g.num_tensors()), (0, 0));
}

#[test]
fn slow_device_disables_the_rewrite() {
    let host = Context::new(Device::Host).unwrap();
    let because = "16-bit arithmetic is not faster on the CPU";
    let (policy, graph) = (policy(), small_graph());
    assert_eq!(policy.disabled_reason(None).unwrap(), None);
    assert_eq!(policy.disabled_reason(Some(&host)).unwrap().as_deref(), Some(because));
    let r = policy.rewrite(Some(&host), &graph).unwrap();
    assert_eq!(r.disabled_reason().as_deref(), Some(because));
    assert_eq!((r.casts.len(), r.num_low_nodes), (0, 0));
    assert_eq!(nodes(&r), [(FP32, AutocastReason::Disabled, None); 5]);
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
    let (policy, graph) = (policy(), small_graph());
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
