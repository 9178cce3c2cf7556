"""Calls on arrays.  Products of integers are exact."""

import ctypes
import math
from random import Random

import mpcore
from hosts import Case, Floats, context, needs_host, needs_numpy, numpy, values


class Gemm(Case):
    @needs_numpy
    @needs_host
    def test_numpy_views(self):
        rng = numpy.random.default_rng(1)
        a = rng.integers(-4, 5, (6, 10)).astype(numpy.float16)[1:5, 2:9]
        b = rng.integers(-4, 5, (5, 7)).astype(numpy.float16).T
        frame = numpy.full((6, 9), 77, numpy.float32)
        out = mpcore.gemm(self.context, a, b, frame[1:5, 2:7])
        wanted = numpy.full((6, 9), 77, numpy.float32)
        wanted[1:5, 2:7] = a.astype(numpy.float32) @ b.astype(numpy.float32)
        self.assertTrue((frame == wanted).all())
        self.assertIs(out.base, frame)

    @needs_numpy
    @needs_host
    def test_extents_of_0_and_1(self):
        for m, n, k in ((1, 1, 1), (1, 5, 3), (5, 1, 3), (4, 5, 1), (0, 5, 3), (4, 5, 0)):
            a = numpy.arange(m * k, dtype=numpy.float32).reshape(m, k)
            b = numpy.arange(k * n, dtype=numpy.float32).reshape(n, k).T
            out = numpy.full((m, n), 9, numpy.float32)
            mpcore.gemm(self.context, a, b, out)
            self.assertTrue((out == a @ b).all(), (m, n, k))

    def test_beta_requires_out_or_c(self):
        a = self.array([1, 0, 0, 1], (2, 2), "fp16")
        self.refused(ValueError, "^beta = 0.5 requires out", mpcore.gemm, self.context, a, a, beta=0.5)
        out = mpcore.gemm(self.context, a, a, beta=0.5, c=self.array([2, 2, 2, 2], (2, 2), "fp16"))
        self.assertEqual(values(self.context.array(out, "fp32")), [2, 1, 1, 2])
        mpcore.gemm(self.context, a, a, out, beta=2)
        self.assertEqual(values(self.context.array(out, "fp32")), [5, 2, 2, 5])

    def test_workspace(self):
        size = mpcore.gemm_workspace_size(self.context, 64, 64, 4096)
        a = self.context.zeros((64, 4096), "fp16")
        space = self.context.zeros(max(size, 256), "uint8")
        out = mpcore.gemm(self.context, a, self.context.zeros((4096, 64), "fp16"), workspace=space)
        self.assertEqual(set(out.tobytes()), {0})


class Training(Case):
    def test_lists(self):
        tensors = self.list_of([3, -4], [], [12])
        each = self.context.zeros(3)
        self.assertEqual(values(tensors.l2norm(per_tensor=each)), [13])
        self.assertEqual(values(each), [5, 0, 12])
        self.assertEqual(values(tensors.amax()), [12])
        norm, report = self.context.zeros(1), mpcore.Reports(self.context)
        tensors.stats(norm=norm, tensor_amax=each, report=report)
        self.assertEqual((values(norm), values(each), report.read()[0].numel), ([13], [4, 0, 12], 3))
        self.refused(mpcore.Error, "all pointers are NULL", tensors.stats)
        flag = self.context.zeros(1)
        tensors.check_nonfinite(flag)
        self.assertEqual(values(flag), [0])
        bad = self.context.array(Floats([math.inf, 0], (2,)))
        tensors.set_data([bad] + tensors.arrays[1:])
        tensors.check_nonfinite(flag)
        self.assertEqual(values(flag), [1])
        with self.assertRaisesRegex(ValueError, r"arrays\[0\] has 3 elements, not 2"):
            tensors.set_data([self.context.zeros(3)] + tensors.arrays[1:])

    def test_unscale(self):
        grads = mpcore.TensorList(self.context, [self.context.array(Floats([8, -2], (2,)), "fp16")])
        out = self.list_of([0, 0])
        scaler = mpcore.Scaler(self.context, "static", init_scale=4)
        self.assertEqual(values(scaler.scale_loss(self.array([3, -1], (2,)))), [12, -4])
        grads.unscale(out, scaler.inv_scale, scaler.found_inf)
        self.assertEqual(values(out.arrays[0]), [2, -0.5])

    def test_sgd(self):
        master, grads = self.list_of([1, 2]), self.list_of([8, -16])
        model = mpcore.TensorList(self.context, [self.context.zeros(2, "fp16")])
        optimizer = mpcore.Optimizer(self.context, "sgd", grads, master, model, lr=0.5, beta1=0)
        scaler = mpcore.Scaler(self.context, "backoff", init_scale=8, growth_interval=1)
        norm, skipped, each = self.context.zeros(1), self.context.zeros(1), self.context.zeros(1)
        mpcore.scale_step(optimizer, scaler, grad_norm=norm, found_inf=skipped, tensor_norms=each)
        self.assertEqual(values(master.arrays[0]), [0.5, 3])
        self.assertEqual(model.arrays[0].tobytes(), b"\x00\x38\x00\x42")  # 0.5, 3 in fp16
        self.assertEqual((scaler.scale.item(), scaler.inv_scale.item()), (16, 1 / 16))
        self.assertEqual(values(norm), [values(self.list_of([1, -2]).l2norm())[0]])
        self.assertEqual(values(each), values(norm))
        self.assertEqual(values(skipped), [0])
        optimizer.set_group(lr=0.25)
        grads.arrays[0].copy_from(Floats([16, 16], (2,)))
        mpcore.scale_step(optimizer, scaler)
        self.assertEqual(values(master.arrays[0]), [0.25, 2.75])
        self.assertEqual(optimizer.get_step(), 2)

    def test_overflow(self):
        master, grads = self.list_of([1, 2]), self.list_of([math.nan, 1])
        optimizer = mpcore.Optimizer(self.context, "adam", grads, master, lr=0.5)
        scaler = mpcore.Scaler(self.context, preset="torch")
        mpcore.scale_step(optimizer, scaler)
        self.assertEqual(values(master.arrays[0]), [1, 2])
        self.assertEqual(scaler.scale.item(), 32768)
        state = scaler.state_dict()
        self.assertEqual((state["steps"], state["skipped"], state["skipped_nan"]), (1, 1, 1))
        again = mpcore.Scaler(self.context, preset="torch")
        again.load_state_dict(state)
        self.assertEqual(again.state_dict(), state)
        self.assertEqual(optimizer.get_step(), 0)

    def test_every_optimizer_allocates_its_state(self):
        for kind in mpcore._sys.mp_optimizer_kind_t:
            master, grads = self.list_of([1, 2], [3]), self.list_of([1, 1], [1])
            mpcore.scale_step(mpcore.Optimizer(self.context, kind, grads, master, lr=0.5))
            self.assertLess(values(master.arrays[1])[0], 3, kind)

    def test_torch_names(self):
        """momentum, betas and "adamw" set fields of mp_param_group_t and a flag."""

        def after_two_steps(kind, **options):
            master, grads = self.list_of([1, -2], [3]), self.list_of([0.5, 0.25], [-1])
            optimizer = mpcore.Optimizer(self.context, kind, grads, master, **options)
            mpcore.scale_step(optimizer)
            mpcore.scale_step(optimizer)
            return [values(array) for array in master.arrays]

        for torch, ours in (
                (("sgd", {"momentum": 0.5}), ("sgd", {"beta1": 0.5})),
                (("sgd", {"momentum": 0}), ("sgd", {"beta1": 0})),
                (("rmsprop", {"momentum": 0.25}), ("rmsprop", {"beta1": 0.25})),
                (("adam", {"betas": (0.5, 0.75)}), ("adam", {"beta1": 0.5, "beta2": 0.75})),
                (("lamb", {"betas": [0.5, 0.75]}), ("lamb", {"beta1": 0.5, "beta2": 0.75})),
                (("AdamW", {}), ("adam", {"flags": "decoupled_decay", "weight_decay": 0.01})),
                (("adamw", {"weight_decay": 0.5, "flags": "no_bias_correction"}),
                 ("adam", {"weight_decay": 0.5, "flags": ["decoupled_decay", "no_bias_correction"]}))):
            with self.subTest(torch=torch):
                expected = after_two_steps(ours[0], lr=0.5, **ours[1])
                self.assertEqual(after_two_steps(torch[0], lr=0.5, **torch[1]), expected)
                groups = [dict(torch[1], lr=0.5)]
                if "flags" not in torch[1]:
                    self.assertEqual(after_two_steps(torch[0], groups=groups), expected)

        optimizer = mpcore.Optimizer(self.context, "adamw", self.list_of([1]), self.list_of([1]), lr=0.5)
        optimizer.set_group(betas=(0.5, 0.75))
        group = optimizer._groups[0]
        self.assertEqual((group.beta1, group.beta2, round(group.weight_decay, 6)), (0.5, 0.75, 0.01))
        for sentence, kind, options in (
                (r"momentum = 0.9 is not supported by adam, only by sgd and rmsprop", "adam", {"momentum": 0.9}),
                (r"betas = \(0.9, 0.99\) is not supported by sgd, only by adam, lamb and novograd", "sgd", {"betas": (0.9, 0.99)}),
                (r"betas = \(0.9,\) must be two numbers", "adam", {"betas": (0.9,)}),
                (r"betas = 0.9 must be two numbers", "adam", {"betas": 0.9}),
                (r"momentum = 0.9 cannot be combined with beta1", "sgd", {"momentum": 0.9, "beta1": 0.9})):
            with self.subTest(sentence), self.assertRaisesRegex(TypeError, sentence):
                after_two_steps(kind, lr=0.5, **options)

    def test_groups(self):
        master, grads = self.list_of([1], [1]), self.list_of([1], [1])
        optimizer = mpcore.Optimizer(self.context, "sgd", grads, master, tensor_group=[0, 1],
                                     groups=[{"lr": 0.5, "beta1": 0}, {"lr": 0.25, "beta1": 0}])
        mpcore.scale_step(optimizer)
        self.assertEqual([values(a) for a in master.arrays], [[0.5], [0.75]])
        with self.assertRaisesRegex(TypeError, "lr is required in each of groups"):
            mpcore.Optimizer(self.context, "sgd", grads, master, groups=[{"beta1": 0}])

    def test_masters_to_model(self):
        master = self.list_of([1, 70000])
        model = mpcore.TensorList(self.context, [self.context.zeros(2, "fp16")])
        skip = self.context.array(Floats([1], (1,)))
        mpcore.masters_to_model(master, model, skip)
        self.assertEqual(model.arrays[0].tobytes(), b"\x00\x00\x00\x00")
        mpcore.masters_to_model(master, model)
        self.assertEqual(model.arrays[0].tobytes(), b"\x00\x3c\xff\x7b")  # 1, 65504
        mpcore.masters_to_model(master, model, flags="model_overflow")
        self.assertEqual(model.arrays[0].tobytes(), b"\x00\x3c\x00\x7c")
        overflows, t = self.context.zeros(1, "int64"), self.context.zeros(1, "int64")
        mpcore.masters_to_model(master, model, flags="stochastic_rounding", rounding_seed=7, t=t,
                                overflows=overflows)
        self.assertEqual(overflows.tobytes()[0], 1)
        self.assertEqual(model.arrays[0].tobytes(), b"\x00\x3c\xff\x7b")

    def test_reports(self):
        grads, master = self.list_of([1, 0], [math.inf, -8, math.nan]), self.list_of([0, 0], [0, 0, 0])
        whole, each = mpcore.Reports(self.context), mpcore.Reports(self.context, 2)
        grads.inspect(whole, each)
        report = whole.read()[0]
        self.assertEqual((report.numel, report.num_nan, report.num_inf, report.num_zero), (5, 1, 1, 1))
        self.assertEqual((report.bad_tensor, report.bad_element, report.bad_value), (1, 0, math.inf))
        self.assertEqual([r.numel for r in each.read()], [2, 3])
        again = mpcore.Reports(self.context)
        optimizer = mpcore.Optimizer(self.context, "sgd", grads, master, lr=1)
        mpcore.scale_step(optimizer, report=again)
        self.assertEqual(bytes(again.read()[0])[:56], bytes(report)[:56])
        with self.assertRaisesRegex(ValueError, "tensor_reports has 1 reports, not 2"):
            mpcore.scale_step(optimizer, tensor_reports=whole)

    def test_checked_step(self):
        """The scaler's flag decides; gradients are not checked."""
        grads, master = self.list_of([65536]), self.list_of([1])
        optimizer = mpcore.Optimizer(self.context, "sgd", grads, master, lr=0.5, beta1=0)
        scaler = mpcore.Scaler(self.context, "backoff")
        mpcore.scale_step(optimizer, scaler, flags="checked")
        self.assertEqual(values(master.arrays[0]), [0.5])
        too_large = self.context.array(Floats([math.inf], (1,)))
        mpcore.scale_step(optimizer, scaler, flags="checked", amax=too_large)
        self.assertEqual(values(master.arrays[0]), [0.5])

    def test_ranks(self):
        """Two ranks with equal data: a sum doubles each element."""

        def copy(dst, src, count):
            mpcore._library.check(mpcore._library.lib.mp_memcpy(self.context.handle, dst, src, 4 * count, None))
            self.context.sync()

        @dict(mpcore._sys.mp_comm_t._fields_)["all_reduce"]
        def all_reduce(send, recv, count, dtype, op, stream, user):
            twice = 2 if op == mpcore._sys.MP_REDUCE_SUM else 1
            numbers = (ctypes.c_float * count)()
            copy(numbers, send, count)
            for i in range(count):
                numbers[i] *= twice
            copy(recv, numbers, count)
            return 0

        comm = mpcore._sys.mp_comm_t(rank=0, world_size=2, all_reduce=all_reduce)
        master, grads = self.list_of([1, 2]), self.list_of([8, -16])
        grads.all_reduce(comm, pre=0.5)
        self.assertEqual(values(grads.arrays[0]), [8, -16])
        grads.all_reduce(comm, post=0.25)
        self.assertEqual(values(grads.arrays[0]), [4, -8])
        optimizer = mpcore.Optimizer(self.context, "sgd", grads, master, lr=0.5, beta1=0)
        mpcore.scale_step(optimizer, mpcore.Scaler(self.context, "static"), comm=comm)
        self.assertEqual(values(master.arrays[0]), [-1, 6])

    @needs_host
    def test_exception_of_a_communicator(self):
        """The caller receives the exception; weights and scale are unchanged."""
        fields = dict(mpcore._sys.mp_comm_t._fields_)

        class Lost(Exception):
            pass

        def raise_it(*arguments):
            calls.append(len(arguments))
            raise Lost("rank 1")

        master, grads = self.list_of([1, 2]), self.list_of([8, -16])
        optimizer = mpcore.Optimizer(self.context, "sgd", grads, master, lr=0.5, beta1=0)
        scaler = mpcore.Scaler(self.context, "static")
        done = fields["all_reduce"](lambda *arguments: 0)
        for name, wanted in (("all_reduce", [7]), ("group_begin", [1]), ("group_end", [1])):
            functions = {"all_reduce": done, "group_begin": fields["group_begin"](lambda user: 0),
                         "group_end": fields["group_end"](lambda user: 0), name: fields[name](raise_it)}
            comm = mpcore._sys.mp_comm_t(rank=0, world_size=2, **functions)
            for call in (lambda: grads.all_reduce(comm), lambda: mpcore.scale_step(optimizer, scaler, comm=comm)):
                calls = []
                with self.subTest(name), self.assertRaisesRegex(Lost, "rank 1"):
                    call()
                self.assertEqual(calls, wanted)
                self.assertIn(b"returned -1", mpcore.lib.mp_last_error())
        self.assertEqual(values(master.arrays[0]), [1, 2])
        self.assertEqual(values(grads.amax()), [16])  # the next call does not raise
        code = fields["all_reduce"](lambda *arguments: 3)
        with self.assertRaisesRegex(mpcore.Error, "comm->all_reduce returned 3"):
            grads.all_reduce(mpcore._sys.mp_comm_t(rank=0, world_size=2, all_reduce=code))

    def test_checkpoints(self):
        """Bytes or dictionaries; 16-bit copies are rounded like the optimizer's."""
        options = {"lr": 0.01, "flags": "stochastic_rounding", "rounding_seed": 5}

        def make(kind="adamw", **more):
            master, grads = self.list_of([0.3, 70000], [-0.7]), self.list_of([0.5, 0.25], [-1])
            model = mpcore.TensorList(self.context, [self.context.zeros(n, "fp16") for n in (2, 1)])
            return (mpcore.Optimizer(self.context, kind, grads, master, model, **{**options, **more}),
                    mpcore.Scaler(self.context, "dynamic", growth_interval=2))

        def all_of(optimizer, scaler):
            return optimizer.state_dict(), scaler.state_dict(), optimizer.model.tobytes()

        first, scaler = make()
        for _ in range(3):
            mpcore.scale_step(first, scaler)
        saved, as_bytes = all_of(first, scaler), first.save(scaler)
        self.assertEqual(saved[0]["t"], 3)
        self.assertEqual([len(one) for one in saved[0]["master"]], [8, 4])
        self.assertEqual(saved[2][0][2:], b"\xff\x7b")  # clamped
        mpcore.scale_step(first, scaler)
        after = all_of(first, scaler)

        second = make()
        second[0].restore(as_bytes, second[1])
        third = make()
        third[0].load_state_dict(saved[0])
        third[1].load_state_dict(saved[1])
        for one in (second, third):
            self.assertEqual(all_of(*one), saved)
            mpcore.scale_step(*one)
            self.assertEqual(all_of(*one), after)

        other, state = make("sgd", momentum=0)[0], saved[0]
        for sentence, call in (
                ("kind = 'adam' must equal the optimizer's kind = 'sgd'", lambda: other.load_state_dict(state)),
                ("state has no entry t, m",
                 lambda: other.load_state_dict({k: v for k, v in state.items() if k not in ("t", "m")})),
                (r"m must be None, like the optimizer's m", lambda: other.load_state_dict(dict(state, kind="sgd"))),
                ("master has tensors of", lambda: first.load_state_dict(dict(state, master=state["master"][:1]))),
                ("t = -1", lambda: first.load_state_dict(dict(state, t=-1))),
                ("policy", lambda: first.restore(as_bytes)), ("bytes", lambda: first.restore(as_bytes[:-1], scaler))):
            with self.subTest(sentence), self.assertRaisesRegex((ValueError, mpcore.Error), sentence):
                call()
        self.assertEqual(all_of(first, scaler), after)  # unchanged

    def test_scaler_names(self):
        named = mpcore.Scaler(self.context, name="dynamic")
        self.assertEqual(bytes(mpcore.Scaler(self.context, "dynamic").config), bytes(named.config))
        static = mpcore.Scaler(self.context, "128")
        self.assertEqual((float(static.scale), float(static.inv_scale), int(static.found_inf)), (128.0, 1 / 128, 0))
        self.refused(mpcore.Error, '"dynamo" is unknown; use', mpcore.Scaler, self.context, "dynamo")

    def test_torch_scaler(self):
        saved = {"scale": 1024.0, "growth_factor": 4.0, "backoff_factor": 0.25, "growth_interval": 3,
                 "_growth_tracker": 2}
        scaler = mpcore.Scaler.from_torch(self.context, saved)
        self.assertEqual(scaler.to_torch(), saved)
        scaler.update()
        self.assertEqual(scaler.scale.item(), 4096)

    def test_damaged_checkpoints(self):
        """A saved state with invalid values either raises and leaves the scaler unchanged, or is
        loaded completely."""
        odd = [None, "x", b"a", [], {}, -1, 1.5, 0.0, 0, 2**31, 2**32 + 512, 2**70, math.inf, math.nan]

        def damaged(random, saved):
            state = dict(saved)
            for name in random.choices([*saved, "unknown"], k=random.randint(1, 3)):
                if random.random() < 0.2:
                    state.pop(name, None)
                else:
                    state[name] = random.choice(odd)
            return state

        def as_text(state):  # NaN equals NaN, 0 equals 0.0
            return {name: str(float(value)) for name, value in state.items()}

        random, taken, refused = Random(1), 0, 0
        for policy in ("static", "backoff", "lognormal", "logmax"):
            scaler = mpcore.Scaler(self.context, policy)
            for _ in range(1000):
                before, state = scaler.state_dict(), damaged(random, mpcore.Scaler(self.context, policy).state_dict())
                try:
                    scaler.load_state_dict(state)
                except (TypeError, ValueError, mpcore.Error):
                    self.assertEqual(as_text(scaler.state_dict()), as_text(before), state)
                    refused += 1
                    continue
                self.assertEqual(as_text(scaler.state_dict()), as_text(state))
                taken += 1
        for _ in range(1000):
            state = damaged(random, mpcore.Scaler(self.context, preset="torch").to_torch())
            try:
                self.assertEqual(as_text(mpcore.Scaler.from_torch(self.context, state).to_torch()), as_text(state))
                taken += 1
            except (TypeError, ValueError, mpcore.Error):
                refused += 1
        self.assertGreater(taken, 100)
        self.assertGreater(refused, 1000)

    def test_accumulation(self):
        scaler = mpcore.Scaler(self.context, "backoff", init_scale=4)
        grads, sums, master = self.list_of([8, -4]), self.list_of([9, 9]), self.list_of([1, 1])
        optimizer = mpcore.Optimizer(self.context, "sgd", sums, master, lr=0.5, beta1=0)
        scaler.accumulate(grads, sums, 0.5, flags="first")
        scaler.accumulate(grads, sums, 0.5)
        self.assertEqual(values(sums.arrays[0]), [2, -1])
        mpcore.scale_step(optimizer, scaler, flags="unscaled")
        self.assertEqual(values(master.arrays[0]), [0, 1.5])
        self.assertEqual(scaler.query(1), mpcore._sys.MP_STEP_OUTCOME_TAKEN)
        grads.arrays[0].copy_from(Floats([math.nan, 0], (2,)))
        scaler.to_fp32(grads, sums)
        self.context.sync()
        self.assertEqual(scaler.query(2), mpcore._sys.MP_STEP_OUTCOME_OVERFLOW)
        scaler.update()
        self.assertEqual(scaler.query(3), mpcore._sys.MP_STEP_OUTCOME_PENDING)
        self.refused(mpcore.Error, "step = 0", scaler.query, 0)
