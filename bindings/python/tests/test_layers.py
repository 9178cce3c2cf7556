"""Convolution, pooling and other layers: kernels by name, strides and errors."""

import math

import mpcore
from hosts import Case, integers, needs_host, numpy, values


class Convolution(Case):
    """2 images of 5 x 6 pixels and 4 channels, 6 filters of 3 x 2, strides, dilation, asymmetric
    padding, two groups."""

    X, FILTER, GROUPS = (2, 5, 6, 4), (6, 3, 2, 2), 2

    def setUp(self):
        super().setUp()
        self.conv = mpcore.Conv2d(self.context, self.X, self.FILTER, stride=(2, 1), padding=(1, 0, 2, 1),
                                  dilation=(1, 2), groups=self.GROUPS)

    def test_kernels(self):
        x, f = self.array(integers(240, 1), self.X, "fp16"), self.array(integers(72, 2), self.FILTER, "fp16")
        kernels = self.conv.kernels("fprop", "fp32")
        able = [info.name.decode() for info in kernels if info.reason is None]
        self.assertTrue(able)
        self.assertTrue(all(info.reason or info.predicted_us > 0 for info in kernels))
        self.assertRegex(self.conv.explain("fprop", "fp32"), f"\nkernel +{able[0]}\n")
        named = mpcore.Conv2d(self.context, self.X, self.FILTER, stride=(2, 1), padding=(1, 0, 2, 1),
                              dilation=(1, 2), groups=2, plan=able[-1])
        space = self.context.empty(max(256, kernels[len(able) - 1].workspace_bytes), "uint8")
        wanted = self.conv.fprop(x, f, dtype="fp32")
        self.assertEqual(values(named.fprop(x, f, dtype="fp32", workspace=space)), values(wanted))
        for op, shapes in {"fprop": (self.X, self.FILTER), "dgrad": (self.conv.y_shape, self.FILTER),
                           "wgrad": (self.X, self.conv.y_shape)}.items():
            space = self.context.empty(max(256, self.conv.workspace_size(op, "fp32")), "uint8")
            arrays = [self.array(integers(math.prod(shape), 1), shape, "fp16") for shape in shapes]
            got, wanted = [getattr(self.conv, op)(*arrays, dtype="fp32", workspace=space) for space in (space, None)]
            self.assertEqual(values(got), values(wanted), op)

    def test_refusals(self):
        context, conv = self.context, self.conv
        x, f, image = context.zeros(self.X, "fp16"), context.zeros(self.FILTER, "fp16"), (1, 4, 4, 4)
        self.all_refused(
            (ValueError, "beta = 1 requires y", lambda: conv.fprop(x, f, beta=1)),
            (TypeError, "unexpected keyword argument 'biass'", lambda: conv.fprop(x, f, biass=None)),
            (ValueError, "3 channels in each of 1 groups, but x_shape has 4",
             lambda: mpcore.Conv2d(context, image, (1, 3, 3, 3))),
            (ValueError, "x_shape has 3 dimensions, not 4", lambda: mpcore.Conv2d(context, (4, 4, 4), (1, 3, 3, 4))),
            (ValueError, "padding has 3 numbers, not 4",
             lambda: mpcore.Conv2d(context, image, (1, 3, 3, 4), padding=(1, 1, 1))),
            (ValueError, "h = 4294967300 must be from ",
             lambda: mpcore.Conv2d(context, (1, 2**32 + 4, 4, 4), (1, 3, 3, 4))),
            (mpcore.Error, "bias", lambda: conv.wgrad(x, context.zeros(conv.y_shape, "fp16"), bias=context.zeros(2))))


class Layers(Case):
    def test_refusals(self):
        context, x = self.context, self.context.zeros((3, 4))
        pool = mpcore.Pool2d(context, "avg_include_pad", (2, 5, 4, 3), (2, 4), "fp32",
                             stride=(2, 1), padding=(1, 0, 1, 0))
        images, index = context.zeros(pool.x_shape), context.empty(pool.y_shape, "uint8")
        pixel = context.zeros((1, 1, 1, 1))
        columns, labels, row_loss = mpcore.ColumnSum(context, 4, 3, "fp32"), context.zeros(2, "int32"), context.zeros(2)
        self.all_refused(
            (ValueError, "src has 1 dimensions, not 4", lambda: mpcore.nchw_to_nhwc(context, context.zeros(4))),
            (TypeError, "int32 is not supported",
             lambda: mpcore.nchw_to_nhwc(context, context.zeros((1, 1, 1, 1), "int32"))),
            (mpcore.Error, "overlaps", lambda: mpcore.nchw_to_nhwc(context, pixel, pixel)),
            (mpcore.Error, "index", lambda: pool.forward(images, index=index)),
            (mpcore.Error, "x", lambda: mpcore.Pool2d(context, "max", (1, 2, 2, 1), 1, "fp32").backward(
                None, context.zeros((1, 2, 2, 1)))),
            (mpcore.Error, "pad_top = 2", lambda: mpcore.Pool2d(context, "max", (1, 4, 4, 1), 2, padding=2)),
            (ValueError, "mode = 'mean' must be one of: max", lambda: mpcore.Pool2d(context, "mean", (1, 4, 4, 1), 2)),
            (ValueError, "beta = 1.0 requires sum", lambda: columns.run(context.zeros((4, 3)), beta=1.0)),
            (ValueError, "op = 'pow' must be one of: copy, add, mul", lambda: mpcore.pointwise(context, "pow", x, x)),
            (ValueError, r"b has shape \(3,\), not \(3, 4\) or its last dimensions",
             lambda: mpcore.pointwise(context, "add", x, context.zeros(3))),
            (TypeError, "int32 is not supported",
             lambda: mpcore.pointwise(context, "add", x, context.zeros(4, "int32"))),
            (ValueError, r"x has shape \(3, 4\) and w \(1, 3\)",
             lambda: mpcore.linear_xent(context, x, context.zeros((1, 3)), labels, row_loss=row_loss)),
            (ValueError, "^kind = 'hinge' must be one of: mse, l1, bce_with_logits",
             lambda: mpcore.element_loss(context, "hinge", x, x)))

    def test_zeros_and_empty_arrays(self):
        self.assertEqual(mpcore.pointwise(self.context, "copy", self.context.empty((3, 0))).tobytes(), b"")
        x, columns = self.context.zeros((2, 2, 3)), mpcore.ColumnSum(self.context, 4, 3, "fp32")
        self.assertEqual(values(columns.run(x)), [0] * 3)
        empty = mpcore.ColumnSum(self.context, 0, 3, "fp16", sum_dtype="bf16")
        self.assertEqual(empty.run(self.context.empty((0, 3), "fp16")).tobytes(), bytes(6))

    @needs_host  # context.array() makes the copy contiguous
    def test_pointwise_of_strided_rows(self):
        wide = numpy.arange(30, dtype=numpy.float32).reshape(3, 10)
        y = mpcore.pointwise(self.context, "add", numpy.ones((3, 4), numpy.float32), wide[:, 2:6])
        self.assertEqual(values(y), [1 + v for v in wide[:, 2:6].ravel()])
        with self.assertRaisesRegex(ValueError, "rows of b must be contiguous"):
            mpcore.pointwise(self.context, "add", numpy.ones((3, 4), numpy.float32), wide[:, ::3])
