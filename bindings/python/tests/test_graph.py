"""Graphs: a perceptron trained in fp32 and in mixed precision, and errors."""

import array
import gc
import random

import mpcore
from hosts import Case, Fleeting, Floats, context, needs_host
from mpcore import _sys

BATCH, IN, HIDDEN, CLASSES, STEPS = 16, 8, 16, 4, 20


def numbers(count, seed, step):
    """Multiples of step that every type represents."""
    return [((i * 7 + i // 3 + seed * 5) % 9 - 4) * step for i in range(count)]


def policy(low="fp16", **options):
    return mpcore.Autocast(low, environment=False, ignore_performance=True, **options)


class Perceptron:
    """Linear, ReLU, Linear, cross-entropy."""

    def __init__(self, device, autocast=None, compiled=True):
        self.device, self.graph = device, mpcore.Graph(device)
        graph = self.graph
        self.x, self.labels = graph.input("x", (BATCH, IN)), graph.input("labels", BATCH, "int32")
        self.w1, self.b1 = graph.parameter("w1", (IN, HIDDEN)), graph.parameter("b1", HIDDEN)
        self.w2, self.b2 = graph.parameter("w2", (CLASSES, HIDDEN)), graph.parameter("b2", CLASSES)
        self.relu = graph.node("Relu", "relu", [graph.node("Linear", "fc1", [self.x, self.w1, self.b1])])
        self.logits = graph.node("Linear", "fc2", [self.relu, self.w2, self.b2], transposed=True)
        self.loss, self.row_loss, self.correct = graph.node("SoftmaxXent", "loss", [self.logits, self.labels], 3)
        graph.output(self.logits)
        graph.keep_gradient(self.relu)
        graph.loss(self.loss)
        if autocast is not None:
            graph.autocast(autocast)
            graph.measure_kernels(0)
        if not compiled:
            return
        graph.compile()
        graph.write(self.w1, Floats(numbers(IN * HIDDEN, 2, 1 / 16), (IN, HIDDEN)))
        graph.write(self.w2, Floats(numbers(CLASSES * HIDDEN, 3, 1 / 16), (CLASSES, HIDDEN)))
        self.bind()

    def bind(self, rows=BATCH):
        self.graph.bind(self.x, self.device.array(Floats(numbers(rows * IN, 1, 0.5), (rows, IN))))
        self.graph.bind(self.labels, self.device.array(Floats([i % CLASSES for i in range(rows)], (rows,), "<i4")))

    def step(self, optimizer, scaler=None):
        self.graph.forward("training")
        self.graph.backward(scaler)
        mpcore.scale_step(optimizer, scaler)

    def loss_now(self):
        return array.array("f", self.graph.tensor(self.loss).data.tobytes())[0]


class Learns(Case):
    def learn(self, low, **options):
        """Trains, and expects a smaller loss."""
        with context() as device:
            net = Perceptron(device, None if low == "fp32" else policy(low))
            with mpcore.Scaler(device, config=mpcore.Autocast.scaler_config(low)) as scaler:
                optimizer = mpcore.Optimizer(device, "sgd", *net.graph.lists(), lr=0.25, **options)
                losses = []
                for _ in range(STEPS):
                    net.step(optimizer, scaler)
                    losses.append(net.loss_now())
                self.assertEqual(scaler.state().skipped, 0)
                self.assertEqual(optimizer.get_step(), STEPS)
                self.assertGreater(losses[0], 1.2)
                self.assertLess(losses[-1], losses[0] - 0.1)
                self.check(net, low)
                optimizer.close()
                net.graph.close()

    def check(self, net, low):
        grads, master, model = net.graph.lists()
        w1 = net.graph.tensor(net.w1)
        self.assertEqual((w1.name, w1.dtype, w1.shape), ("w1", "float32", (IN, HIDDEN)))
        self.assertEqual((master.numels, len(grads)), ([IN * HIDDEN, HIDDEN, CLASSES * HIDDEN, CLASSES], 4))
        memory = net.graph.memory()
        self.assertGreaterEqual(memory.parameters, 4 * sum(master.numels))
        self.assertIn("fc1, relu  mp_gemm", net.graph.describe())
        if low == "fp32":
            self.assertIsNone(model)
            self.assertEqual((w1.dtype_copy, w1.copy, memory.copies), (None, None, 0))
            self.refused(mpcore.Error, "compiled without mp_graph_set_autocast", net.graph.explain)
            return
        name = mpcore.arrays.dtype_name(low)
        self.assertEqual((w1.dtype_copy, w1.dtype_grad, w1.grad.dtype, w1.copy.shape), (name, name, name, (IN, HIDDEN)))
        self.assertGreater(memory.copies, 0)
        self.assertEqual(net.graph.tensor(net.relu).grad.shape, (BATCH, HIDDEN))
        self.assertEqual(model.dtypes[0], name)
        rounded = net.device.empty((IN, HIDDEN), name)
        net.device.cast(w1.data, rounded)
        self.assertEqual(rounded.tobytes(), w1.copy.tobytes(), "the optimizer writes both")
        self.assertRegex(net.graph.explain(), r"fc1/grad_w +LinearBackpropWeight +\w+16 ")
        self.assertIn('"node', net.graph.explain("json"))
        self.assertTrue(net.graph.explain(_sys.MP_AUTOCAST_FORMAT_DOT).startswith("digraph"))

    def test_fp32(self):
        self.learn("fp32")

    def test_fp16_with_momentum(self):
        self.learn("fp16", beta1=0.5)

    def test_without_a_scaler(self):
        net = Perceptron(self.context)
        optimizer = mpcore.Optimizer(self.context, "adam", *net.graph.lists(), lr=0.01)
        net.step(optimizer)
        before = net.loss_now()
        net.step(optimizer)
        self.assertLess(net.loss_now(), before)

    def test_slow_device_leaves_graph_in_fp32(self):
        net = Perceptron(self.context, mpcore.Autocast(environment=False))
        if self.context.on_host:
            self.assertIsNone(net.graph.lists()[2])
            self.assertIn("16-bit arithmetic is not faster on the CPU", net.graph.explain())


class Runs(Case):
    def test_partial_batch(self):
        """The loss of a partial batch is the mean of its rows."""
        net = Perceptron(self.context)
        graph = net.graph
        graph.forward("inference")
        rows = array.array("f", graph.tensor(net.row_loss).data.tobytes())
        correct = graph.tensor(net.correct)
        self.assertEqual((correct.dtype, correct.shape, len(correct.data.tobytes())), ("int64", (), 8))
        graph.set_batch(5)
        net.bind(5)
        graph.forward(_sys.MP_GRAPH_MODE_INFERENCE)
        self.assertAlmostEqual(net.loss_now(), sum(rows[:5]) / 5, 6)
        self.assertEqual(graph.tensor(net.logits).shape, (5, CLASSES))
        self.assertLessEqual(array.array("q", graph.tensor(net.correct).data.tobytes())[0], 5)
        graph.set_batch(BATCH)
        self.refused(ValueError, "x has 5 rows, but the batch is 16", graph.forward, "training")

    def test_inference_with_states_reshape_and_dropout(self):
        graph = mpcore.Graph(self.context)
        x, offset = graph.input("x", (2, 6), "fp32"), graph.input("offset", (), "int64")
        mean, variance = graph.state("mean", 3), graph.state("variance", 3)
        gamma, beta = graph.parameter("gamma", 3), graph.parameter("beta", 3)
        turned = graph.node("Reshape", "turned", [x], extent=[0, 2, -1])
        self.assertEqual(graph.tensor(turned).shape, (2, 2, 3))
        norm = graph.node("BatchNorm", "norm", [turned, gamma, beta, mean, variance], epsilon=0)
        y = graph.node("Dropout", "dropped", [norm, offset], p=0.25, seed=7)
        z = graph.node("Dropout", "again", [y, None])
        packed = graph.node("Reshape", "packed", [x], extent=[0, 1, -1])
        mask = graph.input("mask", (), "int32")
        graph.node("Attention", "attention", [packed, None, None, None, None, mask], p=0.25)
        graph.output(z)
        graph.compile()
        graph.write(gamma, Floats([2, 2, 2], (3,)))
        graph.write(beta, self.context.array(Floats([1, 1, 1], (3,))))
        graph.write(variance, Floats([4, 4, 4], (3,)))
        values = [float(i) for i in range(12)]
        graph.bind(x, self.context.array(Floats(values, (2, 6))))
        self.assertEqual(graph.tensor(offset).dtype, "int64")
        self.refused(TypeError, "offset has dtype int32, not int64", graph.bind, offset, self.context.zeros(1, "int32"))
        for scalar in offset, mask:
            graph.bind(scalar, self.context.zeros((), "int64"))
        graph.forward("inference")
        out = graph.tensor(z).data
        self.assertEqual(list(array.array("f", out.tobytes())), [value + 1 for value in values])
        self.assertIsNone(graph.lists()[0], "there is no loss")
        self.assertEqual(graph.get_step(), 0)
        graph.set_step(41)
        self.assertEqual(graph.get_step(), 41)
        graph.bind(x, None)
        self.refused(mpcore.Error, "input x is not bound", graph.forward, "inference")

    @needs_host
    def test_seeded_gradient_equals_that_of_a_loss(self):
        c = mpcore.Context("host")
        gradients = []
        for seeded in False, True:
            g = mpcore.Graph(c)
            x, w = g.input("x", (2, 1)), g.parameter("w", (1, 1))
            y = g.node("Linear", "fc", [x, w])
            if seeded:
                seed = g.seed_gradient(y)
            else:
                target = g.input("target", (2, 1))
                g.loss(g.node("MSE", "loss", [y, target], weight=2))
            g.compile()
            g.write(w, c.array(Floats([3], (1, 1))))
            g.bind(x, c.array(Floats([1, 2], (2, 1))))
            g.bind(seed if seeded else target, c.array(Floats([4, 10] if seeded else [1, 1], (2, 1))))
            g.forward("training")
            g.backward()
            gradients.append(memoryview(g.tensor(w).grad.tobytes()).cast("f").tolist())
        # dL/dy = 2 (y - t) 2 / 2: 4 and 10 for y = 3 and 6.  dL/dw = 4 x 1 + 10 x 2.
        self.assertEqual(gradients, [[24], [24]])

    @needs_host
    def test_graph_keeps_bound_arrays_alive(self):
        net = Perceptron(self.context)
        net.graph.bind(net.x, Fleeting(numbers(BATCH * IN, 1, 0.5), (BATCH, IN)))
        gc.collect()
        net.graph.forward("inference")
        self.assertGreater(net.loss_now(), 0)
        bound = net.graph.tensor(net.x).data
        self.assertIsInstance(bound, Fleeting)

    def test_lists_and_tensors_keep_the_graph_alive(self):
        net = Perceptron(self.context)
        optimizer = mpcore.Optimizer(self.context, "sgd", *net.graph.lists(), lr=0.25, beta1=0)
        w1 = net.graph.tensor(net.w1).data
        net.step(optimizer)
        before = w1.tobytes()
        del net
        gc.collect()
        self.assertEqual(w1.tobytes(), before)
        mpcore.scale_step(optimizer)
        self.assertNotEqual(w1.tobytes(), before)

    def test_graph_keeps_its_policy_alive(self):
        net = Perceptron(self.context, policy(), compiled=False)
        gc.collect()
        net.graph.compile()
        with policy() as gone:
            other = Perceptron(self.context, gone, compiled=False)
        other.graph.compile()  # the last reference to the policy


class InvalidCalls(Case):
    def test_descriptions(self):
        graph = mpcore.Graph(self.context)
        x, w = graph.input("x", (4, 8)), graph.parameter("w", (8, 6))
        self.refused(mpcore.Error, r"extent\[0\] = 0 must be at least 1", graph.parameter, "t", (0, 2))
        self.refused(ValueError, r"name = 'a\\x00' contains a NUL", graph.state, "a\0", 2)
        self.refused(TypeError, "name = 3 must be a string", graph.state, 3, 2)
        self.refused(ValueError, r"shape\[0\] = 9223372036854775808 must be from ", graph.state, "t", 2**63)
        self.refused(TypeError, "dtype = 'float64' must be", graph.input, "t", 4, "float64")
        self.refused(TypeError, "dtype = None must be", graph.input, "t", 4, None)
        self.refused(TypeError, "dtype fp8 is not supported", graph.input, "t", 4, "fp8")
        node = graph.node
        self.refused(TypeError, "attributes: transposed", node, "Linear", "n", [x, w], transposed="yes")
        self.refused(ValueError, "attributes: seed", node, "Dropout", "n", [x], seed=2**64)
        for kind, value in (("FLOAT: must be MP_ATTRIBUTE_KIND_INT", 0.0), ("INTS", [0]), ("FLOATS", [0.5, 1])):
            self.refused(mpcore.Error, f"node n: Linear: kind of transposed = MP_ATTRIBUTE_KIND_{kind}",
                         node, "Linear", "n", [x, w], transposed=value)
        node("Dropout", "seeded", [x], seed=2**64 - 1, p=0)
        self.refused(mpcore.Error, r"inputs\[1\] = -1", node, "Linear", "n", [x, None])
        self.refused(ValueError, r"inputs\[1\] = 4294967296 must be from ", node, "Linear", "n", [x, 2**32])
        self.refused(ValueError, "outputs = -1", node, "Linear", "n", [x, w], -1)
        self.refused(ValueError, r"tensor\[0\] = 4294967296 must be from ", graph.output, 2**32)
        with self.assertRaises(mpcore.Error) as caught:
            node("Nonlinear", "n", [x])
        self.assertEqual(caught.exception.status, _sys.MP_ERROR_NOT_FOUND)
        graph.close()
        self.refused(ValueError, "this Graph is closed", graph.compile)

    def test_runs(self):
        with context() as device, context() as other:
            net = Perceptron(device)
            graph = net.graph
            self.refused(mpcore.Error, "is not an input", graph.bind, net.w1, device.zeros((IN, HIDDEN)))
            self.refused(TypeError, "x has dtype float16, not float32", graph.bind, net.x,
                         device.zeros((BATCH, IN), "fp16"))
            self.refused(ValueError, r"x has rows of shape \(9,\), not \(8,\)", graph.bind, net.x,
                         device.zeros((BATCH, 9)))
            self.refused(ValueError, r"labels has rows of shape \(1,\), not \(\)", graph.bind, net.labels,
                         device.zeros((BATCH, 1), "int32"))
            self.refused(ValueError, r"values of w1 has shape \(16, 8\), not \(8, 16\)", graph.write, net.w1,
                         device.zeros((HIDDEN, IN)))
            self.refused(TypeError, "list is not an array", graph.write, net.w1, [1.0])
            self.refused(ValueError, "mode = 'test' must be one of: inference, training", graph.forward, "test")
            with mpcore.Scaler(other, "static") as scaler:
                self.refused(ValueError, "different contexts", graph.backward, scaler)
            self.refused(TypeError, "this list belongs to a graph", graph.lists()[1].set_data, [])
            loss, lists = graph.tensor(net.loss).data, graph.lists()
            graph.close()
            self.refused(ValueError, "this Graph is closed", loss.tobytes)
            self.refused(ValueError, "this Graph is closed", lists[0].amax)

    def test_random_arguments_return_or_raise(self):
        chance = random.Random(3)
        values = [None, -1, 0, 1, 2, 3, 2**31, 2**64, 0.5, float("nan"), "", "fp16", "Linear", "Relu", "é\0", b"x", [],
                  [None], (2, 3), {}, object(), mpcore.Autocast(environment=False)]
        answers = exceptions = 0
        with context() as device:
            for _ in range(150):
                net = Perceptron(device, compiled=False)
                graph = net.graph
                anything = lambda: chance.choice(values)  # noqa: E731
                calls = [lambda: graph.input(anything(), anything(), anything()),
                         lambda: graph.state("s", anything()), lambda: graph.parameter(anything(), 2),
                         lambda: graph.node("Linear", "n", [net.x, anything(), anything()]),
                         lambda: graph.node(anything(), "n", [net.relu], anything()),
                         lambda: graph.node("Reshape", "n", [net.x], extent=anything()),
                         lambda: graph.node("Dropout", "n", [net.x, anything()], p=anything()),
                         lambda: graph.output(anything()), lambda: graph.loss(anything()),
                         lambda: graph.keep_gradient(anything()), lambda: graph.autocast(anything())]
                later = [lambda: graph.bind(anything(), anything()), lambda: graph.bind(net.x, anything()),
                         lambda: graph.set_batch(anything()), lambda: graph.write(anything(), anything()),
                         lambda: graph.forward(anything()), lambda: graph.backward(anything()),
                         lambda: graph.tensor(anything()), lambda: graph.explain(anything()), graph.describe,
                         graph.memory, graph.lists]
                for call in [*chance.sample(calls, 3), graph.compile, *chance.sample(later, 4)]:
                    try:
                        call()
                        answers += 1
                    except (mpcore.Error, TypeError, ValueError, AttributeError, OverflowError, IndexError):
                        exceptions += 1
                graph.close()
        self.assertGreater(min(answers, exceptions), 200)
