"""Parity with PyTorch: attention, normalization and cross-entropy in FP32 have the values and
gradients that torch computes in FP64 on the CPU, within bounds derived from the roundings of fp32.

A bound is computed element by element in FP64 from sums of absolute values.  A sum of n terms has
an error of at most n roundings of its absolute terms, in any order; exp and division have 4.
"""

import unittest

import mpcore
from hosts import context

try:
    import torch
    from torch.nn import functional
except ImportError:
    torch = None

U = 2.0**-24  # half a unit in the last place of 1 in fp32
EXP = 4


@unittest.skipIf(torch is None, "no torch for this Python")
class Parity(unittest.TestCase):
    def setUp(self):
        self.context = context()
        torch.manual_seed(1)

    def uniform(self, *shape):
        """Values in [-1, 1] that fp32 represents, in FP64."""
        return torch.empty(shape).uniform_(-1, 1).double().requires_grad_()

    def on_device(self, tensor, dtype=None):
        return self.context.array(tensor.detach().to(dtype or torch.float32).contiguous())

    def assert_within(self, name, got, wanted, bound, valid=None):
        got = torch.frombuffer(bytearray(got.tobytes()), dtype=torch.float32).double().reshape(wanted.shape)
        wanted, valid = wanted.detach(), torch.ones(wanted.shape, dtype=torch.bool) if valid is None else valid
        bound = bound.detach() + U * wanted.abs()  # the result is rounded
        difference = (got - wanted).abs().expand(wanted.shape)[valid]
        share = (difference / bound.expand(wanted.shape)[valid].clamp_min(1e-300)).max().item()
        self.assertLessEqual(share, 1, f"{name}: differs by {difference.max().item():g}")


class Attention(Parity):
    HEADS, DIM = 4, 24

    def check(self, queries, keys, kv_heads=HEADS, dim_v=DIM, batch=2, mask=None, valid=None, lengths=(), **options):
        """mask: of torch, batch x 1 x queries x keys; valid: rows of queries that are compared."""
        heads, scale = self.HEADS, self.DIM ** -0.5
        q, k, v = (self.uniform(batch, *shape) for shape in (
            (queries, heads, self.DIM), (keys, kv_heads, self.DIM), (keys, kv_heads, dim_v)))
        torch_options = {"attn_mask": mask} if mask is not None else {"is_causal": options.get("causal", False)}
        o = functional.scaled_dot_product_attention(
            *(x.transpose(1, 2) for x in (q, k, v)), enable_gqa=kv_heads != heads, **torch_options).transpose(1, 2)
        d_o = self.uniform(batch, queries, heads, dim_v).detach()
        if valid is not None:
            d_o = torch.where(valid[:, :, None, None], d_o, 0.0)
            o = torch.where(valid[:, :, None, None], o, 0.0)
        dq, dk, dv = torch.autograd.grad(o, (q, k, v), d_o)

        own = mpcore.Attention(self.context, batch, heads, queries, keys, self.DIM, "fp32", kv_heads=kv_heads,
                               head_dim_v=dim_v, **options)
        arrays = [self.on_device(x) for x in (q, k, v)]
        given = {name: self.on_device(torch.tensor(of), torch.int32) for name, of in lengths}
        got_o = own.forward(*arrays, **given)
        got = own.backward(*arrays, got_o, self.on_device(d_o), **given)

        # Heads first, each with its head of k and v: batch x heads x rows x elements.
        q, k, v, o, d_o = (x.detach().transpose(1, 2) for x in (q, k, v, o, d_o))
        k, v = (x.repeat_interleave(heads // kv_heads, 1) for x in (k, v))
        seen = torch.ones(queries, keys, dtype=torch.bool) if mask is None else mask
        if options.get("causal") and mask is None:
            seen = seen.tril()
        s = (scale * q @ k.mT).masked_fill(~seen, -torch.inf)
        p = torch.softmax(s, -1).nan_to_num(0.0)
        # Relative error of p: those of the scores and of the maximum, the sum and exp.
        of_s = (self.DIM + 4) * U * scale * (q.abs() @ k.abs().mT).amax(-1, keepdim=True)
        of_p = 4 * of_s + (keys + 2 * EXP) * U
        of_o = (p @ v.abs()) * (of_p + keys * U)
        dp = d_o @ v.mT
        d = (d_o * o).sum(-1, keepdim=True)
        of_ds = p * ((dim_v + 2) * U * (d_o.abs() @ v.abs().mT + (d_o * o).abs().sum(-1, keepdim=True))
                     + (d_o.abs() * of_o).sum(-1, keepdim=True) + (dp - d).abs() * of_p)
        ds, rows = (p * (dp - d)).abs(), queries * heads // kv_heads
        of_dq = scale * (of_ds + (keys + 4) * U * ds) @ k.abs()
        of_dk = scale * (of_ds + (rows + 4) * U * ds).mT @ q.abs()
        of_dv = (p * (of_p + (rows + 4) * U)).mT @ d_o.abs()

        def per_kv_head(bound):
            return bound.unflatten(1, (kv_heads, -1)).sum(2)

        rows = None if valid is None else valid[:, :, None, None].expand(batch, queries, heads, dim_v)
        self.assert_within("o", got_o, o.transpose(1, 2), of_o.transpose(1, 2), rows)
        for name, mine, wanted, bound in zip(("dq", "dk", "dv"), got, (dq, dk, dv), (
                of_dq, per_kv_head(of_dk), per_kv_head(of_dv))):
            self.assert_within(name, mine, wanted, bound.transpose(1, 2))

    def test_full(self):
        self.check(37, 65)

    def test_causal(self):
        self.check(70, 70, causal=True)

    def test_causal_is_aligned_with_the_last_key(self):
        """torch aligns is_causal with the first key, so it gets a mask."""
        self.check(9, 70, causal=True, mask=torch.ones(9, 70, dtype=torch.bool).tril(70 - 9))

    def test_grouped_queries(self):
        """enable_gqa repeats each head of k and v for adjacent query heads."""
        self.check(33, 33, kv_heads=2, causal=True)
        self.check(33, 40, kv_heads=1, dim_v=16)

    def test_lengths(self):
        queries, keys, q_lengths, kv_lengths = 20, 45, (20, 13, 1), (45, 17, 2)
        valid = torch.arange(queries) < torch.tensor(q_lengths)[:, None]
        mask = (torch.arange(keys) < torch.tensor(kv_lengths)[:, None])[:, None, None, :].expand(3, 1, queries, keys)
        self.check(queries, keys, batch=3, mask=mask, valid=valid,
                   lengths=(("q_lengths", q_lengths), ("kv_lengths", kv_lengths)))


class Norm(Parity):
    def check(self, kind, rows, columns, epsilon=1e-5):
        x, gamma, beta, dy = self.uniform(rows, columns), *(self.uniform(columns) for _ in "gb"), self.uniform(rows, columns)
        dy = dy.detach()
        if kind == "layer":
            y = functional.layer_norm(x, (columns,), gamma, beta, epsilon)
            dx, dgamma, dbeta = torch.autograd.grad(y, (x, gamma, beta), dy)
        else:
            y = functional.rms_norm(x, (columns,), gamma, epsilon)
            (dx, dgamma), beta, dbeta = torch.autograd.grad(y, (x, gamma), dy), None, None
        norm = mpcore.Norm(self.context, kind, rows, columns, "fp32", epsilon=epsilon)
        of_gamma, of_x = self.on_device(gamma), self.on_device(x)
        got_y = norm.forward(of_x, of_gamma, None if beta is None else self.on_device(beta))
        got_dgamma = self.context.zeros(columns)
        got_dbeta = None if beta is None else self.context.zeros(columns)
        got_dx = norm.backward(of_x, self.on_device(dy), of_gamma, got_dgamma, got_dbeta)

        x, n = x.detach(), columns + 2 * EXP
        mean = x.mean(-1, keepdim=True) if kind == "layer" else torch.zeros(rows, 1).double()
        of_mean = n * U * x.abs().mean(-1, keepdim=True) if kind == "layer" else 0 * mean
        rstd = ((x - mean).square().mean(-1, keepdim=True) + epsilon).rsqrt()
        of_rstd = n * U + (of_mean * rstd).square()  # relative
        xhat = (x - mean) * rstd
        of_xhat = (of_mean + U * (x - mean).abs()) * rstd + xhat.abs() * of_rstd
        g = dy * gamma
        mean_g = g.abs().mean(-1, keepdim=True) if kind == "layer" else 0 * mean
        mean_gx = (g * xhat).abs().mean(-1, keepdim=True)
        of_gx = (g.abs() * of_xhat).mean(-1, keepdim=True)
        terms = g.abs() + mean_g + xhat.abs() * mean_gx
        of_dx = rstd * (terms * (n * U + of_rstd) + of_xhat * mean_gx + xhat.abs() * of_gx)
        of_beta = 0 if beta is None else beta.abs()
        self.assert_within(f"{kind}_norm y", got_y, y, gamma.abs() * (of_xhat + 2 * U * xhat.abs()) + U * of_beta)
        self.assert_within(f"{kind}_norm dx", got_dx, dx, of_dx)
        sums = (rows + 4) * U
        self.assert_within(f"{kind}_norm dgamma", got_dgamma, dgamma,
                           (dy.abs() * of_xhat).sum(0) + sums * (dy * xhat).abs().sum(0))
        if beta is not None:
            self.assert_within(f"{kind}_norm dbeta", got_dbeta, dbeta, sums * dy.abs().sum(0))

    def test_layer_norm(self):
        self.check("layer", 19, 257)
        self.check("layer", 3, 8, epsilon=0.25)

    def test_rms_norm(self):
        self.check("rms", 19, 257)
        self.check("rms", 3, 8, epsilon=0.25)


class CrossEntropy(Parity):
    def check(self, rows, classes, label_smoothing=0.0, ignored=()):
        x = (8 * self.uniform(rows, classes)).detach().requires_grad_()
        labels = torch.randint(classes, (rows,))
        labels[list(ignored)] = -100
        options = {"label_smoothing": label_smoothing, "ignore_index": -100}
        row_loss = functional.cross_entropy(x, labels, reduction="none", **options)
        loss = functional.cross_entropy(x, labels, **options)
        dx, = torch.autograd.grad(loss, x)
        got_rows, got_loss, got_dx = (self.context.zeros(shape) for shape in (rows, 1, (rows, classes)))
        mpcore.softmax_xent(self.context, self.on_device(x), self.on_device(labels, torch.int64), row_loss=got_rows,
                            loss=got_loss, dlogits=got_dx, label_smoothing=label_smoothing)
        x, n = x.detach(), classes + 2 * EXP
        counted = (labels != -100).double()
        # Of x - lse: the sum of exponentials, whose arguments are rounded, its logarithm, and x.
        of_logs = (n + 2 * (x - x.amax(-1, keepdim=True)).abs().amax(-1)) * U + 4 * U * x.abs().amax(-1)
        of_loss = counted * (of_logs + n * U * row_loss.detach())
        self.assert_within("row_loss", got_rows, row_loss, of_loss)
        count = counted.sum()
        self.assert_within("loss", got_loss, loss.reshape(1), (of_loss.sum() / count + rows * U * loss).reshape(1))
        p = torch.softmax(x, -1)
        of_dx = counted[:, None] / count * (p * (of_logs[:, None] + EXP * U) + 4 * U * (p + label_smoothing))
        # The gradient of the label is -(sum of the other p), plus the smoothing.
        own = functional.one_hot(labels.clamp_min(0), classes).bool()
        of_dx = torch.where(own, of_dx.sum(-1, keepdim=True), of_dx)
        self.assert_within("dlogits", got_dx, dx, of_dx)

    def test_plain(self):
        self.check(33, 257)

    def test_label_smoothing(self):
        self.check(33, 257, label_smoothing=0.1)

    def test_ignored_labels(self):
        self.check(33, 100, ignored=(0, 7, 32))
        self.check(12, 1000, label_smoothing=0.2, ignored=range(11))


class Bounds(Parity):
    def test_a_wrong_value_is_detected(self):
        wanted = torch.ones(3).double()
        with self.assertRaisesRegex(AssertionError, "y: differs by 2.3841"):
            self.assert_within("y", self.on_device(wanted + 4 * U), wanted, U * wanted)
