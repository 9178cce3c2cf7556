"""Batched, grouped and ragged products, and kernels by name."""

import mpcore
from hosts import Case, Floats, integers, product, values


class Groups(Case):
    def test_batched(self):
        m, n, k = 3, 5, 4
        a, b = [integers(m * k, i) for i in range(3)], [integers(n * k, i + 7) for i in range(3)]
        turned = [[x[p * n + j] for j in range(n) for p in range(k)] for x in b]
        matrices = lambda of: mpcore.Matrices(self.context, of)  # noqa: E731
        out = matrices([self.context.zeros((m, n)) for _ in a])
        bias = integers(n, 9)
        mpcore.gemm_batched(self.context, matrices([self.array(x, (m, k), "fp16") for x in a]),
                            matrices([self.array(x, (n, k), "fp16").T for x in turned]), out, alpha=2,
                            bias=self.context.array(Floats(bias, (n,))))
        for x, y, got in zip(a, b, out.arrays):
            self.assertEqual(values(got), [2 * v + bias[i % n] for i, v in enumerate(product(x, y, m, n, k))])
        start = matrices([self.context.array(Floats([1] * m * n, (m, n))) for _ in a])
        wide = matrices([self.array(x, (m, k), "fp16") for x in a])
        flat = matrices([self.array(x, (k, n), "fp16") for x in b])
        size = mpcore.gemm_batched_workspace_size(self.context, wide, flat, out)
        plan = mpcore.gemm_batched_plan(self.context, wide, flat, out)
        self.assertLessEqual(plan.workspace_bytes, size)
        mpcore.gemm_batched(self.context, wide, flat, out, c=start, beta=3, plan=plan,
                            workspace=self.context.empty(max(256, size), "uint8"))
        for x, y, got in zip(a, b, out.arrays):
            self.assertEqual(values(got), [v + 3 for v in product(x, y, m, n, k)])
        self.all_refused(
            (ValueError, "b has 2 matrices, but a has 3",
             lambda: mpcore.gemm_batched(self.context, wide, matrices(flat.arrays[:2]), out)),
            (ValueError, "b has 3 rows, but a has 4 columns",
             lambda: mpcore.gemm_batched(self.context, wide, wide, out)),
            (ValueError, r"arrays\[1\] differs from arrays\[0\]",
             lambda: matrices([out.arrays[0], self.context.zeros((n, m))])),
            (ValueError, "arrays must not be empty", lambda: matrices([])),
            (mpcore.Error, "amax",
             lambda: mpcore.gemm_batched(self.context, wide, flat, out, amax=self.context.zeros(1))))

    def test_grouped(self):
        products = [(self.context.zeros((m, k), "fp16"), self.context.zeros((k, n), "fp16"), self.context.zeros((m, n)))
                    for m, n, k in ((2, 3, 4), (5, 1, 2), (1, 4, 3))]
        space = self.context.empty(max(256, mpcore.gemm_grouped_workspace_size(self.context, products)), "uint8")
        mpcore.gemm_grouped(self.context, products, workspace=space)
        turned = self.array([1, 2, 3, 4, 5, 6], (3, 2), "fp16").T
        mpcore.gemm_grouped(self.context, [(turned, products[2][0].T, self.context.zeros((2, 1)))])
        grouped, mixed = mpcore.gemm_grouped, (turned, products[2][0].T, self.context.zeros((2, 1)))
        self.all_refused(
            (ValueError, "matrices a must all have contiguous rows",
             lambda: grouped(self.context, [mixed, products[0]])),
            (ValueError, r"products\[0\].out has shape \(5, 1\), not \(2, 3\)",
             lambda: grouped(self.context, [products[0][:2] + products[1][2:]])),
            (TypeError, r"products\[1\].a has dtype float32, not float16",
             lambda: grouped(self.context, [products[0], (self.context.zeros((5, 2)), *products[1][1:])])),
            (ValueError, r"products\[0\] has 2 arrays", lambda: grouped(self.context, [products[0][:2]])))
        mpcore.gemm_grouped(self.context, [])

    def test_ragged(self):
        zeros = self.context.zeros
        wide, batch, last, out = zeros((6, 4), "fp16"), zeros((3, 4, 3), "fp16"), zeros(3, "int32"), zeros((6, 3))
        space = self.context.empty(max(256, mpcore.gemm_ragged_workspace_size(self.context, wide, batch, out)), "uint8")
        mpcore.gemm_ragged(self.context, wide, batch, last, out, workspace=space)
        ragged = mpcore.gemm_ragged
        self.all_refused(
            (ValueError, "have 2, 2 and 2 dimensions", lambda: ragged(self.context, wide, wide.T, last, out)),
            (ValueError, r"out has shape \(6, 4\), not \(6, 3\)",
             lambda: ragged(self.context, wide, batch, last, wide)),
            (TypeError, "ends has dtype", lambda: ragged(self.context, wide, batch, out, out)))

    def test_kernels(self):
        kernels = mpcore.gemm_kernels(self.context, 16, 16, 16, "fp16", "fp32")
        able = [info for info in kernels if info.reason is None]
        self.assertEqual(kernels[:len(able)], able)  # in this order
        a, b = (self.array(integers(256, seed), (16, 16), "fp16") for seed in (1, 2))
        wanted = product(integers(256, 1), integers(256, 2), 16, 16, 16)
        for info in able:
            out = mpcore.gemm(self.context, a, b, dtype="fp32", plan=info.name.decode(),
                              workspace=self.context.empty(max(256, info.workspace_bytes), "uint8"))
            self.assertEqual(values(out), wanted, info.name)
        plan = mpcore.gemm_plan(self.context, 16, 16, 16, "fp16", "fp32")
        self.assertEqual(plan.kernel, kernels[0].name)
        for chosen, info in ((None, kernels[0]), (able[-1].name.decode(), able[-1])):
            text = mpcore.gemm_explain(self.context, 16, 16, 16, "fp16", "fp32", plan=chosen)
            self.assertRegex(text, f"\nkernel +{info.name.decode()}\n")
        stored = type(plan).from_buffer_copy(bytes(plan))
        out = mpcore.gemm(self.context, a, b, dtype="fp32", plan=stored,
                          workspace=self.context.empty(max(256, stored.workspace_bytes), "uint8"))
        self.assertEqual(values(out), wanted)
        self.context.measure_kernels(2)
        out = mpcore.gemm(self.context, a, b, dtype="fp32")
        self.assertEqual(values(out), wanted)
        self.assertRegex(mpcore.tuning_text(), "fastest [0-9a-f]{16} [a-z0-9_]+ # m = 16, n = 16, k = 16")
        for query in (mpcore.gemm_workspace_size, mpcore.gemm_plan, mpcore.gemm_kernels, mpcore.gemm_explain):
            self.refused(mpcore.Error, "m = -1", query, self.context, -1, 1, 1)
        self.refused(TypeError, "float64 is not supported", mpcore.gemm_kernels, self.context, 1, 1, 1, "float64")


class Queries(Case):
    def test_history(self):
        scaler = mpcore.Scaler(self.context, "backoff", init_scale=8, growth_interval=1, history_length=2)
        self.assertEqual(scaler.history(), [])
        for bad in (0, 1, 0):
            self.list_of([float("inf") if bad else 0.0]).check_nonfinite(scaler.found_inf)
            scaler.update()
        self.assertEqual(scaler.history(), [(16, 1), (8, 0)])

    def test_optimizer(self):
        master, grads = self.list_of([1, -2], [4]), self.list_of([0, 0], [0])
        optimizer = mpcore.Optimizer(self.context, "sgd", grads, master, tensor_group=[0, 1],
                                     groups=[{"lr": 0.5, "l1": 2}, {"lr": 0.25, "l2": 0.5}])
        self.assertEqual(values(optimizer.regularization()), [2 * 3 + 0.5 * 16])
        self.assertEqual((optimizer.lr.tolist(), optimizer.step_counter.item()), ([0, 0], 0))
        mpcore.scale_step(optimizer)
        self.assertEqual((optimizer.lr.tolist(), optimizer.step_counter.item()), ([0.5, 0.25], 1))
        model = mpcore.TensorList(self.context, [self.context.zeros(2, "fp16"), self.context.zeros(1, "fp16")])
        mpcore.masters_to_model(master, model, flags="stochastic_rounding", t=optimizer.step_counter)

    def test_clip_factor(self):
        scaler = mpcore.Scaler(self.context, "static", init_scale=4)
        norm = self.list_of([24, 32]).l2norm()  # 40, unscaled 10
        self.assertAlmostEqual(values(mpcore.clip_factor(norm, scaler, 5))[0], 0.125, places=6)
        self.assertEqual(values(mpcore.clip_factor(norm, scaler, 20)), [0.25])

    def test_nccl(self):
        """A NULL communicator raises, with or without NCCL."""
        self.refused(mpcore.Error, "nccl", mpcore.nccl_comm, None)
