"""Arrays that the package accepts, and the errors for other objects."""

import ctypes

import mpcore
from hosts import Case, Floats, OnlyDlpack, capsule, needs_host, needs_numpy, numpy
from mpcore.arrays import _Tensor, _Versioned


class OnCuda:
    """A host array that claims to be on a GPU, and has a device attribute like torch.Tensor."""

    class device:
        index = 1

    def __init__(self, address, shape, typestr="<f4"):
        self.__cuda_array_interface__ = {"shape": shape, "typestr": typestr, "data": (address, False),
                                         "version": 3, "strides": None}


class Bfloat16Capsule:
    """A bfloat16 DLPack tensor; its array interface raises TypeError, as in torch."""

    def __init__(self, device_type=1, code=4, bits=16):
        self.data = (ctypes.c_uint16 * 6)(*range(6))
        self.shape = (ctypes.c_int64 * 2)(2, 3)
        self.strides = (ctypes.c_int64 * 2)(1, 2)  # a transposed view
        self.tensor = _Tensor(ctypes.addressof(self.data), device_type, 0, 2, code, bits, 1, self.shape,
                              self.strides, 4)

    def __dlpack__(self, stream=None):
        return capsule(self.tensor, b"dltensor")

    @property
    def __cuda_array_interface__(self):
        raise TypeError("BFloat16 is not supported")


class Views(Case):
    def test_device_array(self):
        a = self.context.zeros((2, 3), "fp16")
        got = mpcore.view(a)
        self.assertEqual((got.dtype, got.shape, got.strides), ("float16", (2, 3), (3, 1)))
        self.assertEqual(got.address, a.pointer)
        turned = mpcore.view(a.T)
        self.assertEqual((turned.shape, turned.strides), ((3, 2), (1, 3)))
        self.assertFalse(turned.is_dense())

    @needs_numpy
    def test_numpy(self):
        a = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
        got = mpcore.view(a[:, :2])
        self.assertEqual((got.address, got.shape, got.strides), (a.ctypes.data, (3, 2), (4, 1)))
        self.assertEqual(got.device, "host")
        self.assertFalse(got.is_dense())
        a.flags.writeable = False
        self.assertFalse(mpcore.view(a).writable)
        self.refused(TypeError, "complex64 is not supported", mpcore.view, a.astype(numpy.complex64))

    @needs_numpy
    def test_numpy_view_of_device_array(self):
        a = self.context.zeros((2, 2))
        if not self.context.on_host:
            with self.assertRaisesRegex(AttributeError, "on a CUDA device; copy it with numpy\\(\\)"):
                a.__array_interface__
            return
        b = numpy.asarray(a)
        b[1, 0] = 5
        self.assertEqual(a.numpy().tolist(), [[0, 0], [5, 0]])

    @needs_numpy
    def test_dlpack(self):
        a = numpy.arange(12, dtype=numpy.float16).reshape(3, 4)
        got = mpcore.view(OnlyDlpack(a.T))
        self.assertEqual((got.address, got.dtype), (a.ctypes.data, "float16"))
        self.assertEqual((got.shape, got.strides, got.device), ((4, 3), (1, 4), "host"))

    def test_dlpack_bfloat16(self):
        source = Bfloat16Capsule()
        got = mpcore.view(source)
        self.assertEqual((got.dtype, got.shape, got.strides), ("bfloat16", (2, 3), (1, 2)))
        self.assertEqual(got.address, ctypes.addressof(source.data) + 4)
        self.assertEqual(mpcore.view(Bfloat16Capsule(device_type=2)).device, 0)
        self.refused(TypeError, "device type 10", mpcore.view, Bfloat16Capsule(device_type=10))
        self.refused(TypeError, "code 5 of 64 bits", mpcore.view, Bfloat16Capsule(code=5, bits=64))

    def test_cuda_array_interface(self):
        got = mpcore.view(OnCuda(4096, (2, 3), "<f2"))
        self.assertEqual((got.address, got.dtype, got.device), (4096, "float16", 1))

    @needs_numpy
    def test_big_endian_arrays_are_rejected(self):
        for dtype in (">f2", ">f4", ">f8", ">i4", ">i8"):
            sentence = f"elements of '{dtype}' are big-endian, .* x.astype\\('<{dtype[1:]}'\\)"
            self.refused(TypeError, sentence, mpcore.view, numpy.ones((2, 2), dtype))
        with self.assertRaisesRegex(TypeError, "b: elements of '>f4' are big-endian"):
            mpcore.gemm(self.context, self.context.zeros((2, 2)), numpy.ones((2, 2), ">f4"))
        self.refused(TypeError, "big-endian", mpcore.view, OnCuda(4096, (2, 3), ">f2"))
        self.refused(TypeError, ">f4 is not supported", self.context.zeros, 3, numpy.dtype(">f4"))
        self.assertEqual(mpcore.view(numpy.ones(2, "<f4")).dtype, "float32")

    def test_array_interface_without_address(self):
        class Image:  # like PIL.Image
            __array_interface__ = {"shape": (2,), "typestr": "|u1", "data": b"ab", "version": 3}

        self.refused(TypeError, "Image has no address: its data is of type bytes", mpcore.view, Image())

    def test_object_without_interface(self):
        self.refused(TypeError, "list is not an array", mpcore.view, [1, 2])


class InvalidArrays(Case):
    """Invalid arrays are rejected before the library reads them."""

    def setUp(self):
        super().setUp()
        self.a = self.context.zeros((4, 4), "fp16")

    def test_device(self):
        if self.context.on_host:
            elsewhere, sentence = OnCuda(4096, (4, 4), "<f2"), "b is on a CUDA device, but the context is on the CPU"
        else:
            elsewhere, sentence = Floats([0] * 16, (4, 4), "<f2"), "b is on the CPU, but the context is on a CUDA device"
        self.refused(ValueError, sentence, mpcore.gemm, self.context, self.a, elsewhere)

    def test_type_and_shape(self):
        context, a = self.context, self.a
        self.all_refused(
            (TypeError, "a has dtype float16, but b has float32",
             lambda: mpcore.gemm(context, a, context.zeros((4, 4)))),
            (TypeError, "dbias has dtype float16, not float32",
             lambda: mpcore.gemm(context, a, a, dbias=context.zeros(4, "fp16"))),
            (TypeError, "int32 is not supported", lambda: mpcore.TensorList(context, [context.zeros(4, "int32")])),
            (ValueError, "b has 3 rows, but a has 4 columns",
             lambda: mpcore.gemm(context, a, context.zeros((3, 4), "fp16"))),
            (ValueError, r"out has shape \(4, 5\), not \(4, 4\)",
             lambda: mpcore.gemm(context, a, a, context.zeros((4, 5), "fp16"))),
            (ValueError, "bias has 3 elements, not 4", lambda: mpcore.gemm(context, a, a, bias=context.zeros(3))),
            (ValueError, "a has 1 dimensions", lambda: mpcore.gemm(context, context.zeros(4, "fp16"), a)))

    @needs_numpy
    @needs_host
    def test_layout(self):
        wide = numpy.zeros((4, 8), numpy.float16)
        self.all_refused(
            (ValueError, "a has neither contiguous rows nor contiguous columns",
             lambda: mpcore.gemm(self.context, wide[:, ::2], self.a)),
            (ValueError, "neither", lambda: mpcore.gemm(self.context, wide[:, 3::-1], self.a)),
            (ValueError, "rows of out must be contiguous",
             lambda: mpcore.gemm(self.context, self.a, self.a, numpy.zeros((4, 4), numpy.float16).T)),
            (ValueError, r"arrays\[1\] is not contiguous",
             lambda: mpcore.TensorList(self.context, [self.a, wide[:, :4]])))

    @needs_host
    def test_read_only_arrays_are_never_written(self):
        """Every output and every written list is checked."""
        here, frozen = self.context, Floats([1] * 16, (4, 4))
        ones = here.array(frozen)

        def read_only(kind=frozen):
            return mpcore.TensorList(here, [kind])

        writable, half = read_only(ones), read_only(here.zeros((4, 4), "fp16"))
        frozen_half, images = Floats([0] * 16, (4, 4), "<f2"), Floats([1] * 16, (1, 4, 4, 1))
        conv = mpcore.Conv2d(here, (1, 4, 4, 1), (1, 1, 1, 1), "fp32")
        scaler = mpcore.Scaler(here, "static")
        comm = mpcore._sys.mp_comm_t(world_size=1)
        grads = read_only(here.zeros((4, 4)))
        momentum = read_only(here.zeros((4, 4)))
        cases = {
            "out": lambda: mpcore.gemm(here, ones, ones, frozen),
            "aux": lambda: mpcore.gemm(here, ones, ones, activation="relu", aux=frozen),
            "aux is": lambda: conv.fprop(images, here.array(Floats([1], (1, 1, 1, 1))), activation="gelu", aux=images),
            "y is": lambda: mpcore.dropout(here, ones, 0.5, 1, frozen),
            r"out\.arrays\[0\]": lambda: mpcore.gemm_batched(
                here, *[mpcore.Matrices(here, [one]) for one in (ones, ones, frozen)]),
            r"master\.arrays\[0\]": lambda: mpcore.Optimizer(here, "sgd", grads, read_only(), lr=1),
            r"model\.arrays\[0\]": lambda: mpcore.Optimizer(here, "sgd", grads, writable, read_only(frozen_half), lr=1),
            r"m\.arrays\[0\]": lambda: mpcore.Optimizer(here, "sgd", grads, writable, lr=1, m=read_only()),
            r"v\.arrays\[0\]": lambda: mpcore.Optimizer(here, "adam", grads, writable, lr=1, v=read_only()),
            r"out\.arrays\[0\] is": lambda: grads.unscale(read_only(), scaler.inv_scale, scaler.found_inf),
            r"sums\.arrays\[0\]": lambda: scaler.accumulate(grads, read_only(), flags="first"),
            r"out\.arrays\[0\] ": lambda: scaler.to_fp32(grads, read_only()),
            r"model\.arrays\[0\] ": lambda: mpcore.masters_to_model(writable, read_only(frozen_half)),
            r"grads\.arrays\[0\]": lambda: read_only().all_reduce(comm),
            "out is": lambda: ones.copy_to(frozen),
        }
        for name, call in cases.items():
            self.refused(ValueError, name + ".* read-only", call)
        self.assertEqual(set(frozen.values) | set(images.values), {1})
        self.assertEqual(set(frozen_half.values), {0})
        mpcore.gemm(here, ones, ones, activation="drelu", aux=frozen)  # aux is only read
        # Gradients are only read.
        optimizer = mpcore.Optimizer(here, "sgd", read_only(), writable, half, lr=1, m=momentum)
        self.refused(ValueError, r"arrays\[0\] is read-only", writable.set_data, [frozen])
        mpcore.scale_step(optimizer, flags="checked", amax=Floats([0], (1,)))
        self.assertEqual(set(frozen.values), {1})

    @needs_host
    def test_read_only_dlpack(self):
        """The read-only flag of DLPack 1.0 is respected."""

        class Versioned:
            def __init__(self, flags):
                self.data, self.shape = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_int64 * 1)(4)
                tensor = _Tensor(ctypes.addressof(self.data), 1, 0, 1, 2, 32, 1, self.shape, None, 0)
                self.managed = _Versioned(1, 0, None, None, flags, tensor)

            def __dlpack__(self, *, max_version):
                return capsule(self.managed, b"dltensor_versioned")

        x = self.context.zeros(4)
        for flags, outcome in ((0, None), (1, "y is read-only")):
            array = Versioned(flags)
            self.assertEqual(self.context.array(array).tobytes(), bytes(array.data))
            if outcome is None:
                mpcore.dropout(self.context, x, 0.5, 1, array)
                self.assertEqual(list(array.data), [0] * 4)
            else:
                self.refused(ValueError, outcome, mpcore.dropout, self.context, x, 0.5, 1, array)
                self.assertEqual(list(array.data), [1, 2, 3, 4])

    @needs_host
    def test_cuda_arrays_are_rejected_on_the_host(self):
        class OfCuda:
            __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (0x7F0000000000, False), "version": 3}

        here, graph = self.context, mpcore.Graph(self.context)
        w = graph.parameter("w", 4)
        graph.output(graph.node("Relu", "relu", [graph.input("x", (1, 4))]))
        graph.compile()
        for name, call in (("source", lambda: here.array(OfCuda())), ("source", lambda: here.zeros(4).copy_from(OfCuda())),
                           ("out", lambda: here.zeros(4).copy_to(OfCuda())),
                           ("values of w", lambda: graph.write(w, OfCuda()))):
            self.refused(ValueError, name + " is on a CUDA device, but the context is on the", call)

    def test_integers_that_overflow_their_c_type(self):
        """Arguments, fields and array elements are never truncated."""
        here, scaler = self.context, mpcore.Scaler(self.context, "static")
        optimizer = mpcore.Optimizer(here, "sgd", *[mpcore.TensorList(here, [here.zeros(3)]) for _ in range(2)], lr=1)
        cases = {
            "step = 4294967296000000000000": lambda: scaler.query(4294967296000000000000),
            "bytes = 18446744073709551616": lambda: here.empty(2**62),
            "stream = 18446744073709551616": lambda: here.sync(2**64),
            "stream = -1": lambda: here.sync(-1),
            "t = 9223372036854775808": lambda: optimizer.set_step(2**63),
            "index = 4294967296": lambda: mpcore.lib.mp_optimizer_set_group(
                optimizer.handle, 2**32, optimizer._groups[0], None),
            "m = 9223372036854775809": lambda: mpcore.gemm_workspace_size(here, 2**63 + 1, 1, 1),
            "batch_count = 9223372036854775808": lambda: mpcore.gemm_workspace_size(here, 1, 1, 1, batch_count=2**63),
            r"numels\[0\] = 18446744073709551617": lambda: mpcore.TensorList(here, [None], numels=[2**64 + 1]),
            r"tensor_group\[0\] = 4294967296": lambda: mpcore.Optimizer(
                here, "sgd", optimizer.grads, optimizer.master, lr=1, tensor_group=[2**32]),
            "seed = -1": lambda: mpcore.dropout(here, here.zeros(3), 0.5, -1),
            "ld_a = 9223372036854775808": lambda: setattr(mpcore._sys.mp_gemm_desc_t(), "ld_a", 2**63),
            "device = 2147483648": lambda: mpcore._sys.mp_context_config_t(device=2**31),
        }
        for sentence, call in cases.items():
            self.refused(ValueError, sentence + " must be from ", call)

    def test_closed(self):
        self.a.close()
        self.refused(ValueError, "this array is closed", mpcore.gemm, self.context, self.a, self.a)

    def test_error_of_the_library(self):
        with self.assertRaisesRegex(mpcore.Error, "kernel") as caught:
            mpcore.gemm(self.context, self.a, self.a, plan="none_such")
        self.assertEqual(caught.exception.status, mpcore._sys.MP_ERROR_NOT_FOUND)

    def test_unknown_names(self):
        context, lists = self.context, [mpcore.TensorList(self.context, [self.a])] * 2
        self.all_refused(
            (ValueError, "^activation = 'rely' must be one of: none, relu, gelu",
             lambda: mpcore.gemm(context, self.a, self.a, activation="rely")),
            (ValueError, "^activation = 99 must be one of: none, relu, gelu",
             lambda: mpcore.gemm(context, self.a, self.a, activation=99)),
            (ValueError, "^flags = 'decoupled' must be one of: nesterov, decoupled_decay",
             lambda: mpcore.masters_to_model(*lists, flags="decoupled")),
            (ValueError, "^device = 'gpu' must be a number or one of: auto, host, cuda", lambda: mpcore.Context("gpu")),
            (TypeError, "growth is not a field of mp_", lambda: mpcore.Scaler(context, "backoff", growth=3)),
            (mpcore.Error, "growth_factor = 1 must be", lambda: mpcore.Scaler(context, "backoff", growth_factor=1)),
            (TypeError, "int7 is not supported", lambda: context.zeros(3, "int7")))

    def test_integer_arguments(self):
        """Any type with __index__ is accepted; floats are rejected, not truncated."""

        class Whole:
            def __init__(self, value):
                self.value = value

            def __index__(self):
                return self.value

        three = Whole(3) if numpy is None else numpy.int64(3)
        self.assertEqual(self.context.zeros(three).shape, (3,))
        self.assertEqual(self.context.zeros((three, 2)).shape, (3, 2))
        one, shape = Whole(1) if numpy is None else numpy.int64(1), (1, 4, 4, 2)
        pool = mpcore.Pool2d(self.context, "max", shape, three, stride=one, padding=one)
        self.assertEqual(pool.y_shape, shape)
        conv = mpcore.Conv2d(self.context, shape, (2, 3, 3, 2), padding=(one, one), groups=one)
        self.assertEqual(conv.y_shape, shape)
        # 1 is MP_POOL_MAX.
        self.assertEqual(mpcore.Pool2d(self.context, one, shape, 2).y_shape, (1, 2, 2, 2))
        graph = mpcore.Graph(self.context)
        self.assertEqual(graph.tensor(graph.parameter("w", three)).shape, (3,))
        self.all_refused(
            (TypeError, "padding = 1.5 must be an integer or a sequence of integers",
             lambda: mpcore.Pool2d(self.context, "max", shape, 2, padding=1.5)),
            (TypeError, r"stride = \(1.5, 2\) must be an integer or a sequence of integers",
             lambda: mpcore.Conv2d(self.context, shape, (2, 3, 3, 2), stride=(1.5, 2))),
            (TypeError, "shape = 2.5 must be an integer", lambda: self.context.zeros(2.5)),
            (TypeError, "x_shape = .* must be an integer", lambda: mpcore.Rnn(self.context, "tanh", (1, 1.5, 1), 1)),
            (TypeError, "^hidden_size = 1.5: ", lambda: mpcore.Rnn(self.context, "tanh", (1, 1, 1), 1.5)),
            (ValueError, "sm_limit = 1099511627776 must be from ",
             lambda: mpcore.Context("host", sm_limit=2**40 if numpy is None else numpy.int64(2**40))),
            (ValueError, "device = 4294967294 must be from ", lambda: mpcore.Context(2**32 - 2)))
