"""Stubs of PyTorch for bench/suites/torch_{step,rnn,transformer}.py, without arithmetic: optimizers
and layers have the real signatures and record their arguments."""
import contextlib
import functools
import types


class Tensor:
    def __init__(self, values, dtype=None):
        self.values, self.dtype, self.grad, self.wants_grad = values, dtype, None, False

    def uniform_(self, low, high):
        return self

    zero_ = detach = double = lambda self, *_: self

    def requires_grad_(self, wanted=True):
        self.wants_grad = wanted
        return self

    def to(self, dtype):
        return Tensor(self.values, dtype)

    def half(self):
        return self.to("float16")

    def numel(self):
        return len(self.values)

    def element_size(self):
        return 2

    def quantile(self, at):
        ordered = sorted(self.values)
        return Tensor([ordered[int(each * (len(ordered) - 1))] for each in at.values])

    def tolist(self):
        return self.values

    def __rmul__(self, factor):
        return Tensor([factor * value for value in self.values])


class GradScaler:
    def __init__(self, device, init_scale=65536.0, growth_interval=2000):
        self.init_scale, self.growth_interval, self.updates, self.checked = init_scale, growth_interval, 0, False

    def scale(self, loss):
        return loss

    def step(self, optimizer):
        self.checked = True
        optimizer.step()

    def update(self):
        assert self.checked, "no inf checks were recorded"
        self.checked, self.updates = False, self.updates + 1


class AdamW:
    """`skips`: the steps find overflows."""
    skips = False

    def __init__(self, params, lr, weight_decay, fused, capturable):
        assert fused and capturable and all(param.dtype == "float32" for param in params)
        self.state = {param: {"step": 0} for param in params}

    def step(self):
        for state in self.state.values():
            state["step"] += not self.skips


class Output:
    """Output of a layer; `kept`: a backward pass can follow, which consumes the saved data."""

    def __init__(self, kept):
        self.kept = kept


class Layer:
    """LSTM, GRU or RNN."""
    made, grad_enabled = [], [True]

    def __init__(self, name, input_size, hidden_size, device=None, dtype=None, nonlinearity="tanh"):
        assert name == "RNN" or nonlinearity == "tanh", "only RNN has a choice"
        self.name, self.sizes, self.dtype, self.nonlinearity = name, (input_size, hidden_size), dtype, nonlinearity
        self.forwards, self.weights = 0, [Tensor([0]) for _ in range(4)]
        self.made.append(self)

    def train(self, mode):
        self.is_training = mode

    def requires_grad_(self, wanted):
        self.wants_grad = wanted

    def parameters(self):
        return iter(self.weights)

    def __call__(self, x, state):
        h = state[0] if self.name == "LSTM" else state
        assert isinstance(h, Tensor) and (self.name != "LSTM" or len(state) == 2)
        assert x.dtype == h.dtype == self.dtype
        self.forwards += 1
        wanted = self.grad_enabled[-1] and (self.wants_grad or x.wants_grad)
        return Output(kept=wanted), state


@contextlib.contextmanager
def set_grad_enabled(mode):
    Layer.grad_enabled.append(mode)
    yield
    Layer.grad_enabled.pop()


class Autograd:
    """Records the requested gradients."""
    asked = []

    def grad(self, output, wanted, gradient):
        assert output.kept, "there is nothing to take gradients of"
        output.kept = False
        self.asked.append(len(wanted))


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    record = synchronize = lambda self: None

    def elapsed_time(self, other):
        return 0.5


class OutOfMemoryError(RuntimeError):
    pass


def no_capture():
    raise RuntimeError("nothing can be captured")


def torch() -> types.SimpleNamespace:
    functional = types.SimpleNamespace(rms_norm=lambda x, width, gamma, epsilon: Output(kept=x.wants_grad))
    cuda = types.SimpleNamespace(
        Event=Event, Stream=no_capture, OutOfMemoryError=OutOfMemoryError, empty_cache=lambda: None,
        memory_allocated=lambda: 100, max_memory_allocated=lambda: 612, reset_peak_memory_stats=lambda: None,
        get_device_properties=lambda device: types.SimpleNamespace(L2_cache_size=1))
    return types.SimpleNamespace(
        __version__="2.0.stub", cuda=cuda, Tensor=Tensor, float16="float16", bfloat16="bfloat16", float32="float32", uint8="uint8",
        nn=types.SimpleNamespace(**{name: functools.partial(Layer, name) for name in ("LSTM", "GRU", "RNN")}, functional=functional), autograd=Autograd(),
        set_grad_enabled=set_grad_enabled, zeros_like=lambda tensor: Tensor(tensor.values, tensor.dtype),
        amp=types.SimpleNamespace(GradScaler=GradScaler), optim=types.SimpleNamespace(AdamW=AdamW),
        empty=lambda shape, device, dtype=None: Tensor([0] * min(shape if isinstance(shape, int) else 10, 10), dtype),
        empty_like=lambda tensor: Tensor(tensor.values, tensor.dtype), zeros=lambda shape, device: Tensor([0]),
        tensor=Tensor, no_grad=contextlib.nullcontext, _foreach_copy_=lambda to, source: None)
