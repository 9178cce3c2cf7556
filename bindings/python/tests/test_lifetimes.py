"""Lifetime of memory: who keeps it alive, until when, and no double free."""

import array
import copy
import ctypes
import gc
import pickle
from unittest import mock

import mpcore
from hosts import Case, FleetingCopy, Floats, needs_host, needs_numpy, numpy, values


@needs_host
class ExportedCopies(Case):
    """DLPack may export a copy that lives as long as its capsule, which only the view owns."""

    def test_list(self):
        tensors = mpcore.TensorList(self.context, [FleetingCopy([3, -4], (2,)), FleetingCopy([12], (1,))])
        self.assertEqual(values(tensors.l2norm()), [13])
        tensors.set_data([FleetingCopy([0, 1], (2,)), FleetingCopy([-7], (1,))])
        self.assertEqual(values(tensors.amax()), [7])

    def test_matrices(self):
        def matrices(kind):
            return mpcore.Matrices(self.context, [kind([1, 2, 3, 4], (2, 2)), kind([5, 6, 7, 8], (2, 2))])

        lasting = [self.context.array(Floats(n, (2, 2))) for n in ([1, 2, 3, 4], [5, 6, 7, 8])]
        a, b = matrices(FleetingCopy), mpcore.Matrices(self.context, lasting)
        outs = [[self.context.zeros((2, 2)) for _ in range(2)] for _ in range(2)]
        mpcore.gemm_batched(self.context, a, b, mpcore.Matrices(self.context, outs[0]))
        mpcore.gemm_batched(self.context, b, b, mpcore.Matrices(self.context, outs[1]))
        self.assertEqual([values(out) for out in outs[0]], [values(out) for out in outs[1]])

    def test_epilogue(self):
        conv = mpcore.Conv2d(self.context, (1, 1, 1, 2), (2, 1, 1, 2), "fp32")
        dx = conv.dgrad(self.context.array(Floats([5, 7], (1, 1, 1, 2))),
                        self.context.array(Floats([1, 0, 0, 1], (2, 1, 1, 2))), activation="drelu",
                        aux=FleetingCopy([1, 0], (1, 1, 1, 2)))
        self.assertEqual(values(dx), [5, 0])

    def test_scaler_arguments(self):
        scaler = mpcore.Scaler(self.context, "logmax")
        again = mpcore.Scaler(self.context, "logmax")
        scaler.update(FleetingCopy([3], (1,)))
        again.update(self.context.array(Floats([3], (1,))))
        self.assertEqual(scaler.state_dict(), again.state_dict())
        static = mpcore.Scaler(self.context, "static", init_scale=4)
        self.assertEqual(values(mpcore.clip_factor(FleetingCopy([40], (1,)), static, 20)), [0.25])
        out = self.list_of([0, 0])
        self.list_of([8, -2]).unscale(out, FleetingCopy([0.5], (1,)), static.found_inf)
        self.assertEqual(values(out.arrays[0]), [4, -1])

    def test_step_arguments(self):
        grads, master = self.list_of([8, 4], [2]), self.list_of([1, 1], [1])
        optimizer = mpcore.Optimizer(self.context, "sgd", grads, master, lr=0.5, beta1=0, weight_decay=1,
                                     lr_multipliers=FleetingCopy([1, 2], (2,)),
                                     decay_multipliers=FleetingCopy([0, 1], (2,)))
        optimizer.step(FleetingCopy([0.5], (1,)), FleetingCopy([0], (1,)))
        self.assertEqual([values(a) for a in master.arrays], [[-1, 0], [-1]])
        scaler = mpcore.Scaler(self.context, "backoff", init_scale=4)
        mpcore.scale_step(optimizer, scaler, flags="checked", amax=FleetingCopy([8], (1,)))
        self.assertEqual(scaler.query(1), mpcore._sys.MP_STEP_OUTCOME_TAKEN)
        model = mpcore.TensorList(self.context, [self.context.zeros(2, "fp16"), self.context.zeros(1, "fp16")])
        mpcore.masters_to_model(self.list_of([1, 2], [0.5]), model, FleetingCopy([0], (1,)))
        self.assertEqual(model.arrays[0].tobytes(), b"\x00\x3c\x00\x40")


class Copies(Case):
    """Objects cannot be copied: a second object with the same address would free it again."""

    def test_copies_are_rejected(self):
        here = self.context
        tensors = mpcore.TensorList(here, [here.zeros(3)])
        graph = mpcore.Graph(here)
        graph.output(graph.node("Relu", "relu", [graph.input("x", (1, 1))]))
        graph.parameter("w", 1)
        graph.compile()
        for one in (here, here.zeros(3), here.zeros((2, 2)).T, tensors, mpcore.Scaler(here, "static"),
                    mpcore.Optimizer(here, "sgd", tensors, mpcore.TensorList(here, [here.zeros(3)]), lr=1),
                    mpcore.Autocast(), graph, graph.lists()[1], graph.tensor(2).data, mpcore.view(here.zeros(3)),
                    mpcore.Reports(here), mpcore.Conv2d(here, (1, 1, 1, 1), (1, 1, 1, 1)),
                    mpcore.BatchNorm(here, 4, 2), mpcore.Matrices(here, [here.zeros((2, 2))])):
            for duplicate in (copy.deepcopy, pickle.dumps):
                with self.subTest(type=type(one).__name__, duplicate=duplicate.__name__):
                    self.refused(TypeError, r"^an? \w+ cannot be copied or pickled: ", duplicate, one)
            if isinstance(one, (mpcore.Context, mpcore.DeviceArray, mpcore.TensorList, mpcore.Scaler, mpcore.Optimizer,
                                mpcore.Autocast, mpcore.Graph, mpcore.View)):
                with self.subTest(type=type(one).__name__), self.assertRaisesRegex(TypeError, "cannot be copied"):
                    copy.copy(one)

    def test_errors_name_the_alternative(self):
        here = self.context
        for one, sentence in ((here.zeros(3), r"a DeviceArray can.*: use context\.array\(x\) to copy its elements "
                                              r"or x\.numpy\(\) to pickle them"),
                              (mpcore.Scaler(here, "static"), r"a Scaler .* load_state_dict\(x\.state_dict\(\)\)"),
                              (mpcore.Autocast(), "an Autocast .* create another one")):
            self.refused(TypeError, sentence, copy.copy, one)

    def test_autocast_graph_can_be_copied(self):
        graph = mpcore.AutocastGraph()
        graph.node("MatMul", [graph.input(), graph.parameter()], name="fc")
        again = pickle.loads(pickle.dumps(copy.deepcopy(graph)))
        self.assertEqual([node.name for node in again.nodes], ["fc"])


@needs_host
class InUse(Case):
    """close() of an object in use: unusable at once, freed with its last user."""

    def setUp(self):
        gc.collect()
        self.freed = []
        for name in ("mp_free", "mp_tensor_list_destroy", "mp_scaler_destroy", "mp_graph_destroy", "mp_optimizer_destroy",
                     "mp_context_destroy"):
            patch = mock.patch.object(mpcore.lib, name, self.record(name, getattr(mpcore.lib, name)))
            patch.start()
            self.addCleanup(patch.stop)
        super().setUp()

    def record(self, name, function):
        def call(*arguments):
            self.freed.append(name)
            return function(*arguments)
        return call

    def ones(self, count=64):
        return self.context.array(Floats([1] * count, (count,)))

    def refill(self):
        """Allocates arrays, which overwrites memory that was freed too early."""
        return [self.context.array(Floats([9] * 64, (64,))) for _ in range(20)]

    def test_array_of_a_list(self):
        array = self.ones()
        tensors = mpcore.TensorList(self.context, [array])
        array.close()
        others = self.refill()
        self.assertEqual(self.freed, [])
        self.assertEqual(values(tensors.l2norm()), [8])
        self.refused(ValueError, "this array is closed", array.numpy)
        self.freed.clear()
        tensors.close()
        self.assertEqual(self.freed, ["mp_tensor_list_destroy", "mp_free"])
        del others

    def test_lists_and_weights_of_an_optimizer(self):
        grad, weight, rates = self.ones(), self.ones(), self.context.array(Floats([2], (1,)))
        grads, masters = (mpcore.TensorList(self.context, [one]) for one in (grad, weight))
        optimizer = mpcore.Optimizer(self.context, "sgd", grads, masters, lr=1, beta1=0, lr_multipliers=rates)
        view = mpcore.view(weight)
        for one in (grad, rates, weight, grads, masters):
            one.close()
        others = self.refill()
        self.assertEqual(self.freed, [])
        mpcore.scale_step(optimizer)
        got = (ctypes.c_float * 64).from_address(view.address)
        self.assertEqual(list(got), [-1] * 64)
        self.refused(ValueError, "this TensorList is closed", masters.amax)
        del view, got
        self.freed.clear()
        optimizer.close()
        del optimizer
        self.assertEqual(self.freed[0], "mp_optimizer_destroy")
        self.assertEqual(sorted(self.freed[1:]), ["mp_free"] * 3 + ["mp_tensor_list_destroy"] * 2)
        del others

    def test_graph_of_an_optimizer(self):
        graph = mpcore.Graph(self.context)
        x, w = graph.input("x", (4, 8)), graph.parameter("w", (8, 2))
        y = graph.node("Linear", "fc", [x, w])
        graph.loss(graph.node("SoftmaxXent", "loss", [y, graph.input("labels", 4, "int32")]))
        graph.compile()
        optimizer = mpcore.Optimizer(self.context, "sgd", *graph.lists(), lr=1)
        graph.close()
        others = self.refill()
        self.assertNotIn("mp_graph_destroy", self.freed)
        mpcore.scale_step(optimizer)
        self.refused(ValueError, "this Graph is closed", optimizer.master.amax)
        optimizer.close()
        del optimizer
        self.assertIn("mp_graph_destroy", self.freed)
        self.assertLess(self.freed.index("mp_optimizer_destroy"), self.freed.index("mp_graph_destroy"))
        del others

    def test_context_of_all_objects(self):
        tensors = mpcore.TensorList(self.context, [self.ones()])
        scaler = mpcore.Scaler(self.context, "static")
        self.context.close()
        self.refused(ValueError, "this Context is closed", tensors.amax)
        self.assertEqual(self.freed, [])
        # A reference cycle, so that the garbage collector frees both at once.
        tensors.cycle, scaler.cycle = scaler, tensors
        del tensors, scaler
        gc.collect()
        self.assertEqual(sorted(self.freed), ["mp_context_destroy", "mp_free", "mp_scaler_destroy",
                                              "mp_tensor_list_destroy"])
        self.assertEqual(self.freed[-1], "mp_context_destroy")


@needs_host
class OwnScaler(Case):
    """The scaler of an optimizer: outcomes and lifetime."""

    def test_outcomes(self):
        w, g = (self.context.array(Floats(x, (2,))) for x in ([1, 2], [1e30, 1]))
        lists = [mpcore.TensorList(self.context, [each]) for each in (g, w)]
        optimizer = mpcore.Optimizer(self.context, "sgd", *lists, lr=0.5, beta1=0)
        outcome, rejected = self.context.zeros(1, "int32"), self.context.zeros(1, "int64")
        mpcore.scale_step(optimizer, outcome=outcome, rejected_updates=rejected)
        own = optimizer.scaler
        self.assertEqual(own.query(1), mpcore._sys.MP_STEP_OUTCOME_OUT_OF_RANGE)
        self.assertEqual(list(array.array("i", outcome.tobytes())), [mpcore._sys.MP_STEP_OUTCOME_OUT_OF_RANGE])
        self.assertEqual((own.state().steps, own.state().out_of_range), (1, 1))
        w.copy_from(Floats([3e38, 2], (2,)))
        g.copy_from(Floats([-1e18, 1], (2,)))
        optimizer.set_group(lr=1e21)
        mpcore.scale_step(optimizer, outcome=outcome, rejected_updates=rejected)
        self.assertEqual(own.query(2), mpcore._sys.MP_STEP_OUTCOME_TAKEN)
        self.assertEqual(list(array.array("q", rejected.tobytes())), [1])
        own.close()
        mpcore.scale_step(optimizer)
        kept = optimizer.scaler
        optimizer.close()
        self.assertEqual(kept.state().steps, 3)


@needs_numpy
@needs_host
class NumpyViews(Case):
    """numpy.asarray does not copy: the memory lives until the last view is dropped."""

    def use_memory(self):
        """Allocates arrays, which overwrites memory that was freed too early."""
        return [self.context.array(numpy.full(1000, 9, numpy.float32)) for _ in range(20)]

    def test_array(self):
        ours = self.context.array(numpy.full(1000, 3, numpy.float32))
        theirs = numpy.asarray(ours)[10:]
        ours.close()
        others = self.use_memory()
        self.assertTrue((theirs == 3).all())
        self.refused(ValueError, "this array is closed", ours.numpy)
        self.refused(ValueError, "this array is closed", numpy.asarray, ours)
        del ours, theirs, others

    def test_memory_is_freed_with_the_last_view(self):
        freed = []
        ours = self.context.zeros(1000)
        ours._give_back = lambda: freed.append(True)
        theirs = numpy.asarray(ours)
        ours.close()
        self.assertEqual(freed, [])
        del ours
        self.assertEqual(freed, [])
        del theirs
        self.assertEqual(freed, [True])
        plain = self.context.zeros(1000)
        plain._give_back = lambda: freed.append(False)
        plain.close()
        self.assertEqual(freed, [True, False])

    def test_graph(self):
        graph = mpcore.Graph(self.context)
        w = graph.parameter("w", 1000)
        graph.output(graph.node("Relu", "relu", [graph.input("x", (1, 1))]))
        graph.compile()
        graph.write(w, numpy.full(1000, 3, numpy.float32))
        theirs = numpy.asarray(graph.tensor(w).data)
        graph.close()
        others = self.use_memory()
        self.assertTrue((theirs == 3).all())
        self.refused(ValueError, "this Graph is closed", graph.describe)
        del theirs, others
