"""Autocast: rewrites of graphs, reports, single operations, and errors."""

import json
import os
import random
from unittest import mock

import mpcore
from hosts import Case
from mpcore import _sys


def policy(low="fp16", preset="default", level="normal", **options):
    return mpcore.Autocast(low, preset, level, environment=False, **options)


def network():
    """Returns a graph with a node for each property that decides a type, and the reason and cause
    of each type with amax_limit = 1000 and depth_limit = 575."""
    graph, why = mpcore.AutocastGraph(), []

    def add(reason, cause, op, inputs, name=None, **options):
        why.append((_sys.mp_autocast_reason_t[f"MP_AUTOCAST_REASON_{reason}"], cause))
        return graph.node(op, inputs, name=name, **options)

    x, w1, gain, w2 = graph.input(), *[graph.parameter() for _ in range(3)]
    conv1 = add("ALLOW_LIST", None, "Conv2D", [x, w1], "conv1", depth=575)
    norm = add("BETWEEN_ALLOW", 3, "BatchNorm", [conv1, gain, None], "norm",
               slots=[0] + [_sys.MP_AUTOCAST_SLOT_FP32] * 2)
    conv2 = add("ALLOW_LIST", None, "Conv2D", [add("BETWEEN_ALLOW", 3, "Relu", [norm], "relu"), w2], "conv2")
    add("DENY_LIST", None, "Exp", [conv2], "exp").role = "output"
    add("DEPTH", None, "MatMul", [x, x], depth=576)
    add("RANGE", None, "MatMul", [graph.input(amax=1001.0), x])
    add("KEPT", None, "MatMul", [x, x], keep_fp32=True, no_low=False)
    add("ALLOW_LIST", None, None, [x], node_class="allow")
    back = graph.tensor()  # read before the node that writes it is added
    merge = add("ALLOW_LIST", None, "MatMul", [x, back])
    add("CLUSTER_LOW", 9, "TensorListGetItem", [merge], "next", outputs=[back])
    graph.container([merge, "next"])
    first = add("CLUSTER_FP32", 12, "MatMul", [x, x])
    add("NO_ALLOW_NEARBY", None, "TensorListGetItem", [x], "second")
    graph.loop([first, "second"])
    pulled = add("DENY_UPSTREAM", 4, "Tanh", [add("ALLOW_LIST", None, "MatMul", [x, x])], "pulled")
    graph.hidden("exp", pulled)
    last = [graph.tensor(slot=_sys.MP_AUTOCAST_SLOT_FP32), graph.tensor("int32")]
    assert add("ALLOW_LIST", None, "MatMul", [pulled, None], outputs=last) == tuple(last)
    return graph, why


def net():
    """A convolution and an exponential."""
    graph = mpcore.AutocastGraph()
    conv = graph.node("Conv2D", [graph.input(), graph.parameter()], name="conv1")
    graph.node("Exp", [conv], name="exp").role = "output"
    return graph


class Rewrites(Case):
    def test_every_property_of_a_graph(self):
        graph, why = network()
        result = policy(amax_limit=1000.0, depth_limit=575).rewrite(graph)
        self.assertEqual(list(zip(result.reasons, result.causes)), why)
        self.assertIsInstance(result.reasons[0], _sys.mp_autocast_reason_t)
        is_low = [reason >= _sys.MP_AUTOCAST_REASON_ALLOW_LIST for reason, _ in why]
        self.assertEqual(result.node_dtypes, ["float16" if low else "float32" for low in is_low])
        low, high = "float16", "float32"
        self.assertEqual(result.tensor_dtypes, [high] * 4 + [low] * 4 + [high] * 5 + [low] * 3 + [high] * 2 +
                         [low, high, high, None])
        kernel, copied = _sys.MP_CAST_KIND_KERNEL, _sys.MP_CAST_KIND_MODEL_COPY
        self.assertEqual(result.casts, [
            (0, high, low, kernel, 5), (1, high, low, copied, 1), (3, high, low, copied, 1), (7, low, high, kernel, 1),
            (18, low, high, kernel, 1), (19, high, low, kernel, 1)])
        none = [None, None]
        self.assertEqual(result.input_casts, [[0, 1], [None, *none], [None], [None, 2], [3], none, none, none, [0],
                                              [0, None], [None], none, [None], [0, 0], [4], [5, None]])
        self.assertEqual((result.num_casts, result.num_low_nodes, result.num_parameters_low), (6, 9, 2))
        self.assertIsNone(result.disabled_reason)

    def test_options_of_a_policy(self):
        """The reason for an addition between two products, and the numbers of casts to 16 and to 32
        bits."""
        for options, low, reason, to_low, to_high in (
                ({}, "float16", "BETWEEN_ALLOW", 1, 0),
                ({"low": "bf16", "preset": "tensorflow_bf16"}, "bfloat16", "BETWEEN_ALLOW", 1, 0),
                ({"level": "tensor_cores_only"}, "float16", "UNLISTED", 2, 1),
                ({"level": _sys.MP_AUTOCAST_LEVEL_INFER_AS_DENY}, "float16", "DENY_LIST", 2, 1),
                ({"keep_io": True}, "float16", "BETWEEN_ALLOW", 1, 1),
                ({"emulate": True}, "float16", "BETWEEN_ALLOW", 3, 6)):  # more casts than tensors
            graph = mpcore.AutocastGraph()
            x = graph.input()
            y = graph.node("AddV2", [graph.node("MatMul", [x, x])] * 2)
            graph.node("MatMul", [y, y]).role = "output"
            result = policy(**{"preset": "tensorflow", **options}).rewrite(graph)
            to = [cast.to_dtype for cast in result.casts]
            got = result.reasons[1].name[len("MP_AUTOCAST_REASON_"):], to.count(low), to.count("float32")
            self.assertEqual(got, (reason, to_low, to_high), options)

    def test_pattern_and_class(self):
        graph, careful = network()[0], policy()
        careful.set_nodes("conv[2-9]", "deny")
        careful.set_class("Relu", "unlisted")
        careful.set_class(["Exp", "Mine"], "infer")
        classes = [careful.class_of(op) for op in ("Relu", "Exp", "Mine", "Conv2D", "Nobody's")]
        self.assertEqual(classes, [_sys.MP_OP_CLASS_UNLISTED, _sys.MP_OP_CLASS_INFER, _sys.MP_OP_CLASS_INFER,
                                   _sys.MP_OP_CLASS_ALLOW, _sys.MP_OP_CLASS_UNLISTED])
        result = careful.rewrite(graph)
        self.assertEqual(result.node_dtypes[:4], ["float16"] + ["float32"] * 3)
        self.assertEqual(result.reasons[3:5],
                         [_sys.MP_AUTOCAST_REASON_DENY_LIST, _sys.MP_AUTOCAST_REASON_DENY_UPSTREAM])
        self.refused(mpcore.Error, "policy is in use", careful.set_nodes, "*", "allow")

    def test_outputs(self):
        graph = mpcore.AutocastGraph()
        y = graph.node("MatMul", [graph.input()])
        self.assertEqual(graph.node("SaveV2", [y], outputs=0), ())
        several = graph.node("Split", [y], outputs=3)
        self.assertEqual([tensor.producer for tensor in several], [2, 2, 2])
        self.assertEqual(len(policy().rewrite(graph).tensor_dtypes), 5)

    def test_empty_graph(self):
        graph, one = mpcore.AutocastGraph(), policy()
        result = one.rewrite(graph)
        self.assertEqual((result.node_dtypes, result.casts, result.input_casts), ([], [], []))
        self.assertIn("0 of 0 nodes", one.explain(graph, result))

    def test_nodes_added_after_a_rewrite(self):
        graph, one = net(), policy()
        before = one.rewrite(graph)
        graph.node("Exp", [graph.tensors[0]], name="more")
        self.assertEqual(len(one.rewrite(graph).node_dtypes), 3)
        self.assertNotIn("more", one.explain(graph, before), "explains the graph that was rewritten")


class Reports(Case):
    def setUp(self):
        self.graph, self.policy = network()[0], policy()
        self.result = self.policy.rewrite(self.graph)

    def test_formats(self):
        text = self.policy.explain(self.graph, self.result)
        self.assertRegex(text, "\nnorm +BatchNorm +fp16 +between conv1 and conv2\n")
        report = json.loads(self.policy.explain(self.graph, self.result, "json"))
        self.assertEqual([node["cause"] for node in report["nodes"]], self.result.causes)
        self.assertTrue(self.policy.explain(self.graph, self.result, _sys.MP_AUTOCAST_FORMAT_DOT).startswith("digraph"))

    def test_result_of_another_policy_or_graph(self):
        for one, graph in ((self.policy, net()), (policy(), self.graph)):
            self.refused(ValueError, "result belongs to another", one.explain, graph, self.result)


class DisabledRewrite(Case):
    def test_disabled_by_device(self):
        one, graph = policy(), net()
        self.assertIsNone(one.disabled_reason())
        result = one.rewrite(graph, self.context)
        self.assertEqual(result.disabled_reason, one.disabled_reason(self.context))
        if self.context.on_host:
            self.assertIn("16-bit arithmetic is not faster on the CPU", result.disabled_reason)
            self.assertEqual((set(result.reasons), result.casts), ({_sys.MP_AUTOCAST_REASON_DISABLED}, []))
            self.assertIn(result.disabled_reason, one.explain(graph, result))
        eager = policy(ignore_performance=True)
        self.assertIsNone(eager.disabled_reason(self.context))
        self.assertEqual(eager.rewrite(graph, self.context).num_low_nodes, 1)

    def test_disabled_by_environment(self):
        with mock.patch.dict(os.environ, {"MP_AUTOCAST": "off"}):
            closed, open_one = mpcore.Autocast(), policy()
        self.assertIn("MP_AUTOCAST", closed.disabled_reason())
        self.assertIsNone(open_one.disabled_reason())
        with mock.patch.dict(os.environ, {"MP_AUTOCAST": "bf16", "MP_AUTOCAST_DENY_ADD": "Mine"}):
            other = mpcore.Autocast("fp16")
        self.assertEqual(other.class_of("Mine"), _sys.MP_OP_CLASS_DENY)
        self.assertEqual(other.rewrite(net()).node_dtypes[0], "bfloat16")
        with mock.patch.dict(os.environ, {"MP_AUTOCAST": "fp8"}):
            self.refused(mpcore.Error, "MP_AUTOCAST = fp8", mpcore.Autocast)


class OneOperation(Case):
    def test_op(self):
        one = policy(preset="pytorch")
        self.assertEqual(one.op("matmul", ["fp32", "bfloat16", None, "int64", "fp16"]),
                         (["float16", "float16", None, None, None], "float16"))
        self.assertEqual(one.op("exp", ["fp16"]), (["float32"], "float32"))
        self.assertEqual(one.op("relu", ["fp16"]), ([None], "float16"))
        self.assertEqual(one.op("add", ["fp16", "fp32"]), (["float32", None], "float32"))
        self.assertEqual(one.op("arange", []), ([], None))

    def test_banned(self):
        with self.assertRaisesRegex(mpcore.Error, "binary_cross_entropy_with_logits") as caught:
            policy(preset="pytorch").op("binary_cross_entropy", ["fp32", "fp32"])
        self.assertEqual(caught.exception.status, _sys.MP_ERROR_UNSUPPORTED)

    def test_scaler(self):
        with mpcore.Scaler(self.context, config=mpcore.Autocast.scaler_config("fp16")) as scaler:
            self.assertEqual(scaler.state().scale, 2.0**15)
        config = mpcore.Autocast.scaler_config("bf16")
        with mpcore.Scaler(self.context, config=config, init_scale=4.0) as scaler:
            self.assertEqual(scaler.state().scale, 4)
        self.assertEqual((config.policy, config.init_scale), (_sys.MP_SCALER_POLICY_STATIC, 1), "it is copied")
        with self.assertRaisesRegex(TypeError, "one of policy, preset, name and config"):
            mpcore.Scaler(self.context, "static", config=config)


class InvalidArguments(Case):
    def test_policies(self):
        one, graph = policy(), net()
        for kind, sentence, call, arguments in (
                (TypeError, "dtype fp8 is not supported", mpcore.Autocast, ("fp8",)),
                (ValueError, "preset = 'caffe' must be one of: default, tensorflow",
                 mpcore.Autocast, ("fp16", "caffe")),
                (ValueError, "level = 'high' must be one of: normal,", mpcore.Autocast, ("fp16", "onnx", "high")),
                (mpcore.Error, "dtype_low = MP_DTYPE_NONE must be MP_FP16, ",
                 mpcore.Autocast.scaler_config, (None,)),
                (mpcore.Error, "MP_AUTOCAST_LEVEL_FORCE_ALL", policy("bf16", level="force_all").rewrite, (graph,)),
                (ValueError, "op_class = 'green' must be one of: unlisted, allow,", one.set_class, ("Relu", "green")),
                (TypeError, r"ops\[1\] = 3 must be a string", one.set_class, (["Relu", 3], "deny")),
                (ValueError, r"pattern = 'a\\x00b' contains a NUL", one.set_nodes, ("a\0b", "deny")),
                (mpcore.Error, r"pattern = a\[b has an unmatched", policy().set_nodes, ("a[b", "deny")),
                (ValueError, "format = 'svg' must be one of: text, json",
                 one.explain, (graph, one.rewrite(graph), "svg")),
                (TypeError, "op_type = None must be a string", one.op, (None, ["fp32"])),
                (TypeError, "dtype fp8 is not supported", one.op, ("Relu", ["fp8"]))):
            self.refused(kind, sentence, call, *arguments)
        self.refused(ValueError, "depth_limit = 9223372036854775808 must be from ", mpcore.Autocast, depth_limit=2**63)

    def test_closed(self):
        with policy() as one:
            self.assertIsNone(one.disabled_reason())
        one.close()
        for call, arguments in ((one.disabled_reason, ()), (one.class_of, ("Relu",)), (one.rewrite, (net(),)),
                                (one.set_class, ("Relu", "deny")), (one.op, ("Relu", []))):
            self.refused(ValueError, "this Autocast is closed", call, *arguments)

    def test_invalid_additions(self):
        graph, other = net(), net()
        x = graph.tensors[0]
        for kind, sentence, inputs, options in (
                (ValueError, r"inputs\[1\] belongs to another graph", [x, other.tensors[0]], {}),
                (TypeError, r"inputs\[0\] = 'x' must be an AutocastTensor", "x", {}),
                (ValueError, "slots has 1 elements, but there are 2 inputs", [x, x], {"slots": [0]}),
                (ValueError, r"outputs\[0\] is already an output of a node", [], {"outputs": [graph.tensors[-1]]}),
                (ValueError, r"outputs\[1\] is already an output of a node", [], {"outputs": [x, x]}),
                (ValueError, "outputs = -1 is negative", [], {"outputs": -1}),
                (ValueError, "node_flags = 'kep' must be one of: keep_fp32, other_device,", [], {"kep": True}),
                (ValueError, "node_class = 'good' must be one of: unlisted,", [], {"node_class": "good"})):
            self.refused(kind, sentence, graph.node, "Add", inputs, **options)
        self.refused(ValueError, "node = 'conv3': unknown name", graph.hidden, "conv1", "conv3")
        self.refused(ValueError, "node = <mpcore.AutocastTensor 0> must be an output of a node", graph.container, [x])
        graph.node("Add", name="conv1")
        self.refused(ValueError, "node = 'conv1': 2 nodes have this name", graph.loop, ["conv1"])
        self.assertEqual(len(graph.nodes), 3, "a rejected node is not added")

    def test_errors_name_array_and_index(self):
        for kind, sentence, change in (
                (mpcore.Error, r"graph->hidden_dst\[0\] = 2", lambda graph: graph.hidden(1, 2)),
                (mpcore.Error, r"graph->member\[1\] = -1", lambda graph: graph.container([0, -1])),
                (mpcore.Error, r"graph->node_op\[2\] = NULL", lambda graph: graph.node(None))):
            graph = net()
            change(graph)
            self.refused(kind, sentence, policy().rewrite, graph)
        for kind, sentence, of_node, of_tensor in (
                (mpcore.Error, r"graph->node_depth\[2\] = -3 is negative", {"depth": -3}, {}),
                (mpcore.Error, r"graph->tensor_slot\[2\] = 255", {}, {"slot": 255, "dtype": "fp16"}),
                (ValueError, r"input_slot\[3\] = 256 must be from ", {"slots": [256]}, {}),
                (ValueError, r"node_depth\[2\] = 9223372036854775808 must be from ", {"depth": 2**63}, {}),
                (ValueError, r"tensor_slot\[2\] = -1 must be from ", {}, {"slot": -1}),
                (TypeError, "node_depth: ", {"depth": "many"}, {}), (TypeError, "tensor_amax: ", {}, {"amax": "large"}),
                (TypeError, "dtype float33 is not supported", {}, {"dtype": "float33"}),
                (ValueError, "role = 'weight' must be one of: activation, parameter, output", {}, {"role": "weight"}),
                (TypeError, r"node_name\[2\] = 7 must be a string", {"name": 7}, {}),
                (ValueError, r"node_name\[2\] = 'a\\x00' contains a NUL", {"name": "a\0"}, {})):
            graph = net()
            graph.node("MatMul", [graph.tensors[0]], **of_node)
            vars(graph.tensors[2]).update(of_tensor)
            self.refused(kind, sentence, policy().rewrite, graph)

    def test_random_arguments_return_or_raise(self):
        chance = random.Random(7)
        huge = [2**31, 2**64]  # not as a number of outputs: each output would be created
        values = [None, -1, 0, 1, 2, 5, 255, 256, -2**63, 0.5, float("nan"), "", "fp16", "deny", "conv1",
                  "é\0", b"x", [], [None], {}, object(), mpcore.AutocastGraph()]
        answers = exceptions = 0
        for _ in range(3000):
            graph = net()
            values[-1] = chance.choice(graph.tensors)
            anything = lambda: chance.choice(huge + values)  # noqa: E731
            one = policy()
            calls = [lambda: graph.node(chance.choice(["Relu", anything()]), [values[-1], anything()]),
                     lambda: graph.node("MatMul", name=anything(), depth=anything(), node_class=anything()),
                     lambda: graph.node("MatMul", [values[-1]], slots=anything(), outputs=chance.choice(values)),
                     lambda: graph.node("Exp", **{chance.choice(["keep", "cast", "depth"]): anything()}),
                     lambda: graph.hidden(anything(), anything()), lambda: graph.container([0, anything()]),
                     lambda: graph.loop(anything()), lambda: one.set_class(anything(), anything()),
                     lambda: setattr(values[-1], chance.choice(["dtype", "role", "amax", "slot"]), anything()),
                     lambda: one.set_nodes(anything(), anything()), lambda: one.op(anything(), anything()),
                     lambda: one.class_of(anything()), lambda: mpcore.Autocast(anything(), anything(), anything())]
            for call in [*chance.sample(calls, 3), lambda: one.explain(graph, one.rewrite(graph), "json")]:
                try:
                    call()
                    answers += 1
                except (mpcore.Error, TypeError, ValueError, AttributeError, OverflowError, IndexError):
                    exceptions += 1
        self.assertGreater(min(answers, exceptions), 1000)
