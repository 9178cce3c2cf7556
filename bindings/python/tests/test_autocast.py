"""Autocast: rewrites of graphs, reports, single operations, and errors."""

import json
import os
import random
import unittest
from unittest import mock

import mpcore
from hosts import Case, context
from mpcore import _sys


def policy(low="fp16", preset="tensorflow", level="normal", **options):
    return mpcore.Autocast(low, preset, level, environment=False, **options)


def net():
    """Two convolutions with a batch norm between, and an exponential."""
    graph = mpcore.AutocastGraph()
    x, w, mean = graph.input(), graph.parameter(), graph.parameter()
    conv1 = graph.node("Conv2D", [x, w], name="conv1")
    norm = graph.node("FusedBatchNormV3", [conv1, mean], slots=[0, _sys.MP_AUTOCAST_SLOT_FP32], name="norm")
    relu = graph.node("Relu", [norm], name="relu")
    conv2 = graph.node("Conv2D", [relu, w], name="conv2")
    graph.node("Exp", [conv2], name="exp").role = "output"
    return graph


def low_nodes(graph, result):
    return [node.name for node, dtype in zip(graph.nodes, result.node_dtypes) if dtype != "float32"]


class Rewrites(unittest.TestCase):
    def test_convolutions(self):
        graph = net()
        result = policy().rewrite(graph)
        self.assertEqual(result.node_dtypes, ["float16"] * 4 + ["float32"])
        self.assertEqual(result.tensor_dtypes, ["float32"] * 3 + ["float16"] * 4 + ["float32"])
        x, w, conv2 = 0, 1, 6
        self.assertEqual(result.casts, [(x, "float32", "float16", _sys.MP_CAST_KIND_KERNEL, 1),
                                        (w, "float32", "float16", _sys.MP_CAST_KIND_MODEL_COPY, 2),
                                        (conv2, "float16", "float32", _sys.MP_CAST_KIND_KERNEL, 1)])
        self.assertEqual(result.input_casts, [[0, 1], [None, None], [None], [None, 1], [2]])
        self.assertEqual(result.reasons, [_sys.MP_AUTOCAST_REASON_ALLOW_LIST, _sys.MP_AUTOCAST_REASON_BETWEEN_ALLOW, _sys.MP_AUTOCAST_REASON_BETWEEN_ALLOW,
                                          _sys.MP_AUTOCAST_REASON_ALLOW_LIST, _sys.MP_AUTOCAST_REASON_DENY_LIST])
        self.assertIsInstance(result.reasons[0], _sys.mp_autocast_reason_t)
        self.assertEqual(result.causes, [None, 3, 3, None, None])
        self.assertEqual((result.num_casts, result.num_low_nodes, result.num_parameters_low), (3, 4, 1))
        self.assertIsNone(result.disabled_reason)

    def test_bf16(self):
        result = policy("bf16", "tensorflow_bf16").rewrite(net())
        self.assertEqual(result.node_dtypes, ["bfloat16"] * 4 + ["float32"])

    def test_pattern_and_class(self):
        graph, careful = net(), policy()
        careful.set_nodes("conv[2-9]", "deny")
        careful.set_class("Relu", "unlisted")
        careful.set_class(["Exp", "Mine"], "infer")
        self.assertEqual([careful.class_of(op) for op in ("Relu", "Exp", "Mine", "Conv2D", "Nobody's")],
                         [_sys.MP_OP_CLASS_UNLISTED, _sys.MP_OP_CLASS_INFER, _sys.MP_OP_CLASS_INFER, _sys.MP_OP_CLASS_ALLOW,
                          _sys.MP_OP_CLASS_UNLISTED])
        result = careful.rewrite(graph)
        self.assertEqual(low_nodes(graph, result), ["conv1"])
        self.assertEqual(result.reasons[3:], [_sys.MP_AUTOCAST_REASON_DENY_LIST, _sys.MP_AUTOCAST_REASON_DENY_UPSTREAM])
        self.assertEqual(result.causes[4], 3)
        with self.assertRaisesRegex(mpcore.Error, "policy is in use"):
            careful.set_nodes("*", "allow")

    def test_limits(self):
        for options, why in (({"amax_limit": 1000.0}, _sys.MP_AUTOCAST_REASON_RANGE), ({"depth_limit": 10}, _sys.MP_AUTOCAST_REASON_DEPTH)):
            graph = mpcore.AutocastGraph()
            graph.node("MatMul", [graph.input(), graph.parameter(amax=1001.0)], depth=11)
            self.assertEqual(policy(**options).rewrite(graph).reasons, [why])
            self.assertEqual(policy().rewrite(graph).reasons, [_sys.MP_AUTOCAST_REASON_ALLOW_LIST])

    def test_levels(self):
        graph = net()
        result = policy(level="tensor_cores_only").rewrite(graph)
        self.assertEqual(low_nodes(graph, result), ["conv1", "conv2"])
        result = policy(level=_sys.MP_AUTOCAST_LEVEL_INFER_AS_DENY).rewrite(graph)
        self.assertEqual(result.reasons[1], _sys.MP_AUTOCAST_REASON_DENY_LIST)

    def test_node_flags(self):
        reasons = {"keep_fp32": _sys.MP_AUTOCAST_REASON_KEPT, "other_device": _sys.MP_AUTOCAST_REASON_OTHER_DEVICE, "no_low": _sys.MP_AUTOCAST_REASON_NO_KERNEL}
        for flag, why in reasons.items():
            graph = mpcore.AutocastGraph()
            graph.node("MatMul", [graph.input()], **{flag: True})
            graph.node("MatMul", [graph.input()], **{flag: False})
            self.assertEqual(policy().rewrite(graph).reasons, [why, _sys.MP_AUTOCAST_REASON_ALLOW_LIST])
        graph = mpcore.AutocastGraph()
        product = graph.node("MatMul", [graph.input()], writes_either=True)
        graph.node("Mean", [product], reads_either=True)
        graph.node("Exp", [graph.node("MatMul", [product], writes_either=True)])
        result = policy().rewrite(graph)
        self.assertEqual(result.tensor_dtypes[1:4:2], ["float16", "float32"])
        self.assertEqual([cast.tensor for cast in result.casts], [0])

    def test_a_cast_is_absorbed(self):
        graph = mpcore.AutocastGraph()
        cast = graph.node("Cast", [graph.input("int32")], name="cast", cast=True)
        graph.node("MatMul", [cast])
        result = policy().rewrite(graph)
        self.assertEqual(result.reasons, [_sys.MP_AUTOCAST_REASON_CAST_ABSORBED, _sys.MP_AUTOCAST_REASON_ALLOW_LIST])
        self.assertEqual((result.causes, result.tensor_dtypes), ([1, None], [None, "float16", "float16"]))

    def test_outputs_and_absent_inputs(self):
        graph = mpcore.AutocastGraph()
        mean = graph.tensor(slot=_sys.MP_AUTOCAST_SLOT_FP32)
        y, same = graph.node("MatMul", [graph.input(), None], outputs=[graph.tensor(), mean])
        self.assertIs(same, mean)
        self.assertEqual(graph.node("SaveV2", [y], outputs=0), ())
        several = graph.node("Split", [y, mean], outputs=3)
        self.assertEqual([tensor.producer for tensor in several], [2, 2, 2])
        result = policy().rewrite(graph)
        self.assertEqual(result.tensor_dtypes[:2], ["float32", "float32"])
        self.assertEqual(result.tensor_dtypes[y.index], "float16")
        self.assertEqual(len(result.input_casts[0]), 2)

    def test_a_class_without_an_operation(self):
        graph = mpcore.AutocastGraph()
        graph.node(None, [graph.node(None, [graph.input()], node_class="allow")], node_class=_sys.MP_OP_CLASS_DENY)
        self.assertEqual(policy().rewrite(graph).reasons, [_sys.MP_AUTOCAST_REASON_ALLOW_LIST, _sys.MP_AUTOCAST_REASON_DENY_LIST])

    def test_hidden_edges(self):
        graph = mpcore.AutocastGraph()
        push = graph.node("Relu", [graph.node("MatMul", [graph.input()])], name="push")
        pull = graph.node("Relu", [graph.input()], name="pull")
        graph.node("MatMul", [pull])
        self.assertEqual(policy().rewrite(graph).reasons[2], _sys.MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW)
        graph.node("Exp", name="root", outputs=[graph.tensor()])
        graph.node("Tanh", [graph.input()], name="behind")
        graph.hidden("root", "behind")
        graph.hidden(push, pull)
        result = policy().rewrite(graph)
        self.assertEqual(result.reasons[2], _sys.MP_AUTOCAST_REASON_BETWEEN_ALLOW)
        self.assertEqual((result.reasons[5], result.causes[5]), (_sys.MP_AUTOCAST_REASON_DENY_UPSTREAM, 4))

    def test_container(self):
        graph = mpcore.AutocastGraph()
        push = graph.node("Relu", [graph.node("MatMul", [graph.input()])])
        graph.node("TensorListGetItem", [graph.input()], name="get")
        graph.container([push, "get"])
        result = policy().rewrite(graph)
        self.assertEqual((result.reasons[2], result.causes[2]), (_sys.MP_AUTOCAST_REASON_CLUSTER_LOW, 1))

    def test_loop(self):
        """A loop needs a tensor that is read before the node that writes it is added."""
        for back_edge in (True, False):
            graph = mpcore.AutocastGraph()
            back = graph.tensor()
            merge = graph.node("Merge", [graph.node("MatMul", [graph.input()]), back], name="merge")
            body = graph.node("MatMul", [merge], name="body")
            graph.node("NextIteration", [body], outputs=[back], name="next", back_edge=back_edge,
                       no_low=not back_edge)
            graph.loop([merge, "next"])
            result = policy().rewrite(graph)
            self.assertEqual(result.node_dtypes[1::2], ["float16" if back_edge else "float32"] * 2)
        self.assertEqual(result.reasons[1], _sys.MP_AUTOCAST_REASON_CLUSTER_FP32)

    def test_keep_io(self):
        graph = mpcore.AutocastGraph()
        graph.node("MatMul", [graph.input()]).role = "output"
        self.assertEqual(policy().rewrite(graph).num_casts, 1)
        casts = policy(keep_io=True).rewrite(graph).casts
        self.assertEqual([(cast.tensor, cast.to_dtype, cast.readers) for cast in casts],
                         [(0, "float16", 1), (1, "float32", 1)])

    def test_emulation(self):
        """Every tensor stays fp32, and there are more casts than tensors."""
        graph = mpcore.AutocastGraph()
        x, w = graph.input(), graph.input()
        for _ in range(3):
            x = graph.node("MatMul", [x, w])
        result = policy(emulate=True).rewrite(graph)
        self.assertEqual(set(result.tensor_dtypes), {"float32"})
        # To fp16: all tensors except the last, which is not read.  To fp32: each input.
        self.assertEqual((result.num_low_nodes, result.num_casts), (3, 4 + 6))
        self.assertEqual(len(result.casts), result.num_casts)
        self.assertTrue(all(result.casts[cast].to_dtype == "float32" for casts in result.input_casts for cast in casts))

    def test_empty_graph(self):
        graph, one = mpcore.AutocastGraph(), policy()
        result = one.rewrite(graph)
        self.assertEqual((result.node_dtypes, result.casts, result.input_casts), ([], [], []))
        self.assertIn("0 of 0 nodes", one.explain(graph, result))

    def test_nodes_added_after_a_rewrite(self):
        graph, one = net(), policy()
        before = one.rewrite(graph)
        graph.node("Exp", [graph.tensors[-1]], name="more")
        self.assertEqual(len(one.rewrite(graph).node_dtypes), 6)
        self.assertNotIn("more", one.explain(graph, before), "explains the graph that was rewritten")


class Reports(unittest.TestCase):
    def setUp(self):
        self.graph, self.policy = net(), policy()
        self.result = self.policy.rewrite(self.graph)

    def test_text(self):
        lines = self.policy.explain(self.graph, self.result).splitlines()
        self.assertRegex(lines[1], "^norm +FusedBatchNormV3 +fp16 +between conv1 and conv2$")
        self.assertRegex(lines[-1], "^4 of 5 nodes in fp16; casts: 2 by a kernel, 1 by the optimizer's copy$")

    def test_json(self):
        report = json.loads(self.policy.explain(self.graph, self.result, "json"))
        self.assertEqual([node["name"] for node in report["nodes"]], [node.name for node in self.graph.nodes])
        self.assertEqual([node["cause"] for node in report["nodes"]], self.result.causes)
        self.assertEqual([cast["readers"] for cast in report["casts"]], [cast.readers for cast in self.result.casts])

    def test_dot(self):
        self.assertTrue(self.policy.explain(self.graph, self.result, _sys.MP_AUTOCAST_FORMAT_DOT).startswith("digraph"))

    def test_result_of_another_policy_or_graph(self):
        for one, graph in ((self.policy, net()), (policy(), self.graph)):
            with self.assertRaisesRegex(ValueError, "result belongs to another"):
                one.explain(graph, self.result)


class DisabledRewrite(unittest.TestCase):
    def test_disabled_by_device(self):
        with context() as device:
            one, graph = policy(), net()
            self.assertIsNone(one.disabled_reason())
            result = one.rewrite(graph, device)
            self.assertEqual(result.disabled_reason, one.disabled_reason(device))
            if device.on_host:
                self.assertIn("16-bit arithmetic is not faster on the CPU", result.disabled_reason)
                self.assertEqual((set(result.reasons), result.casts), ({_sys.MP_AUTOCAST_REASON_DISABLED}, []))
                self.assertIn(result.disabled_reason, one.explain(graph, result))
            eager = policy(ignore_performance=True)
            self.assertIsNone(eager.disabled_reason(device))
            self.assertEqual(eager.rewrite(graph, device).num_low_nodes, 4)

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
            with self.assertRaisesRegex(mpcore.Error, "MP_AUTOCAST = fp8"):
                mpcore.Autocast()


class OneOperation(unittest.TestCase):
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
        with context() as device:
            with mpcore.Scaler(device, config=mpcore.Autocast.scaler_config("fp16")) as scaler:
                self.assertEqual(scaler.state().scale, 2.0**15)
            config = mpcore.Autocast.scaler_config("bf16")
            with mpcore.Scaler(device, config=config, init_scale=4.0) as scaler:
                self.assertEqual(scaler.state().scale, 4)
            self.assertEqual((config.policy, config.init_scale), (_sys.MP_SCALER_POLICY_STATIC, 1), "it is copied")
            with self.assertRaisesRegex(TypeError, "one of policy, preset, name and config"):
                mpcore.Scaler(device, "static", config=config)


class InvalidArguments(Case):
    def test_policies(self):
        self.refused(mpcore.Error, "config->dtype_low = MP_FP32 must be MP_FP16 or MP_BF16", mpcore.Autocast, "fp32")
        self.refused(TypeError, "dtype fp8 is not supported", mpcore.Autocast, "fp8")
        self.refused(ValueError, "preset = 'caffe' must be one of: default, tensorflow", mpcore.Autocast, preset="caffe")
        self.refused(ValueError, "level = 'high' must be one of: normal,", mpcore.Autocast, level="high")
        self.refused(mpcore.Error, "config->amax_limit = -1 is negative", mpcore.Autocast, amax_limit=-1)
        self.refused(ValueError, "depth_limit = 9223372036854775808 must be from ", mpcore.Autocast, depth_limit=2**63)
        self.refused(mpcore.Error, "dtype_low = MP_DTYPE_NONE must be MP_FP16, MP_BF16 or MP_FP32",
                     mpcore.Autocast.scaler_config, None)
        self.refused(mpcore.Error, "MP_AUTOCAST_LEVEL_FORCE_ALL", policy("bf16", level="force_all").rewrite, net())
        one = policy()
        self.refused(ValueError, "op_class = 'green' must be one of: unlisted, allow,", one.set_class, "Relu", "green")
        self.refused(TypeError, r"ops\[1\] = 3 must be a string", one.set_class, ["Relu", 3], "deny")
        self.refused(ValueError, r"pattern = 'a\\x00b' contains a NUL", one.set_nodes, "a\0b", "deny")
        self.refused(mpcore.Error, r"pattern = a\[b has an unmatched", one.set_nodes, "a[b", "deny")
        self.refused(ValueError, "format = 'svg' must be one of: text, json", one.explain, *self.rewritten(one), "svg")

    @staticmethod
    def rewritten(one):
        graph = net()
        return graph, one.rewrite(graph)

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
        node = graph.node
        self.refused(ValueError, r"inputs\[1\] belongs to another graph", node, "Add", [x, other.tensors[0]])
        self.refused(TypeError, r"inputs\[0\] = 'x' must be an AutocastTensor", node, "Add", "x")
        self.refused(ValueError, "slots has 1 elements, but there are 2 inputs", node, "Add", [x, x], slots=[0])
        self.refused(ValueError, r"outputs\[0\] is already an output of a node", node, "Add", outputs=[graph.tensors[-1]])
        self.refused(ValueError, r"outputs\[1\] is already an output of a node", node, "Add", outputs=[x, x])
        self.refused(ValueError, "outputs = -1 is negative", node, "Add", outputs=-1)
        self.refused(ValueError, "node_flags = 'kep' must be one of: keep_fp32, other_device,", node, "Add", kep=True)
        self.refused(ValueError, "node_class = 'good' must be one of: unlisted,", node, "Add", node_class="good")
        self.refused(ValueError, "node = 'conv3': unknown name", graph.hidden, "conv1", "conv3")
        self.refused(ValueError, "node = <mpcore.AutocastTensor 0> must be an output of a node", graph.container, [x])
        graph.node("Add", name="conv1")
        self.refused(ValueError, "node = 'conv1': 2 nodes have this name", graph.loop, ["conv1"])
        self.assertEqual(len(graph.nodes), 6, "a rejected node is not added")

    def test_errors_name_array_and_index(self):
        def add(**options):
            graph = net()
            graph.node("MatMul", [graph.tensors[0]], **options)
            return graph

        def change(**fields):
            graph = net()
            for name, value in fields.items():
                setattr(graph.tensors[2], name, value)
            return graph

        graph = net()
        graph.hidden(4, 5)
        self.refused(mpcore.Error, r"graph->hidden_dst\[0\] = 5", policy().rewrite, graph)
        graph = net()
        graph.container([0, -1])
        self.refused(mpcore.Error, r"graph->member\[1\] = -1", policy().rewrite, graph)
        for kind, sentence, wrong in (
                (mpcore.Error, r"graph->node_depth\[5\] = -3 is negative", add(depth=-3)),
                (mpcore.Error, r"graph->tensor_slot\[2\] = 255", change(slot=255, dtype="fp16")),
                (mpcore.Error, r"graph->input_slot\[3\] = 255", change(dtype="bf16")),
                (ValueError, r"input_slot\[8\] = 256 must be from ", add(slots=[256])),
                (ValueError, r"node_depth\[5\] = 9223372036854775808 must be from ", add(depth=2**63)),
                (ValueError, r"tensor_slot\[2\] = -1 must be from ", change(slot=-1)),
                (TypeError, "node_depth: ", add(depth="many")),
                (TypeError, "tensor_amax: ", change(amax="large")),
                (TypeError, "dtype float33 is not supported", change(dtype="float33")),
                (ValueError, "role = 'weight' must be one of: activation, parameter, output", change(role="weight")),
                (TypeError, r"node_name\[5\] = 7 must be a string", add(name=7)),
                (ValueError, r"node_name\[5\] = 'a\\x00' contains a NUL", add(name="a\0"))):
            self.refused(kind, sentence, policy().rewrite, wrong)
        graph = net()
        graph.node(None)
        self.refused(mpcore.Error, r"graph->node_op\[5\] = NULL", policy().rewrite, graph)

    def test_op(self):
        self.refused(TypeError, "op_type = None must be a string", policy().op, None, ["fp32"])
        self.refused(TypeError, "dtype fp8 is not supported", policy().op, "Relu", ["fp8"])

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
