"""Calls of bindings/vectors.txt, by the names of their arguments."""

import array
import re

import mpcore
import pytest
from hosts import TARGET, FleetingCopy, Floats, context
from vectors import FILE, cases

# The arrays that a call returns.
RESULTS = {
    "gemm": ["out"], "sum_rows": ["sum"], "pointwise": ["y"], "strided_copy": ["y"], "cast": ["dst"],
    "glu_forward": ["y"], "glu_backward": ["dx"], "softmax_forward": ["y"], "softmax_backward": ["dx"],
    "rope": ["y"], "dropout": ["y"], "nchw_to_nhwc": ["dst"], "nhwc_to_nchw": ["dst"],
    "Conv2d.fprop": ["y"], "Conv2d.dgrad": ["dx"], "Conv2d.wgrad": ["dfilter"],
    "Pool2d.forward": ["y"], "Pool2d.backward": ["dx"],
    "BatchNorm.forward": ["y"], "BatchNorm.backward": ["dx"], "BatchNorm.inference": ["y"],
    "Norm.forward": ["y"], "Norm.backward": ["dx"], "ColumnSum.run": ["sum"],
    "Embedding.forward": ["out"], "Embedding.backward": ["dtable"],
    "Attention.forward": ["o"], "Attention.backward": ["dq", "dk", "dv"],
    "Rnn.forward": ["y", "hn", "cn"], "Rnn.inference": ["y", "hn", "cn"],
    "Rnn.backward_data": ["dx", "dh0", "dc0"], "Rnn.backward_weights": ["grads"],
}
# Functions that allocate a result of type `dtype`.
TYPED = "gemm", ".fprop", ".dgrad", ".wgrad", "sum_rows", "nchw_to_nhwc", "nhwc_to_nchw"
INTEGERS = {"int32": ("i", "<i4"), "int64": ("q", "<i8"), "uint8": ("B", "|u1")}


class Runner:
    """Runs one case.  `allocates`: outputs that the call returns are not passed.  `copies`: inputs
    are exported as copies, which only the views of the call keep alive.  `wrong`: shapes and types
    of arrays in place of the right ones."""

    def __init__(self, calls, allocates=False, copies=False, wrong=None):
        self.context, self.calls, self.arrays = context(), calls, {}
        self.allocates, self.copies, self.wrong = allocates, copies, wrong or {}

    def upload(self, given):
        if given.name in self.wrong:
            return self.context.zeros(*self.wrong[given.name])
        if self.copies and given.wanted is None and given.dtype != "uint8" and 0 not in given.shape:
            numbers = map(int, given.numbers) if given.dtype in INTEGERS else given.numbers
            return FleetingCopy(numbers, given.shape, given.dtype)
        if given.dtype in INTEGERS:
            typestr = INTEGERS[given.dtype][1]
            return self.context.array(Floats(map(int, given.numbers), given.shape, typestr))
        return self.context.array(Floats(given.numbers, given.shape), given.dtype)

    def read(self, got):
        if got.dtype in INTEGERS:
            return list(array.array(INTEGERS[got.dtype][0], got.tobytes()))
        return list(array.array("f", self.context.array(got, "fp32").tobytes()))

    def arguments(self, call):
        """Keyword arguments: weights.name is an entry of a mapping, products[i].name of a tuple."""
        options = dict(call.options)
        given = [one for one in call.arrays if not one.name.startswith("self.")]
        self.arrays.update((one.name, self.upload(one)) for one in given)
        turned = [operand for operand in "ab" if options.pop(f"transpose_{operand}", None)]
        for name in [one.name for one in given] + call.again:
            outer, inner = re.fullmatch(r"(\w+)(?:\[\d+\])?(?:\.(\w+))?", name).groups()
            value = self.arrays[name]
            value = self.context.array(value).T if (inner or outer) in turned else value
            if inner is None:
                options[name] = value
            elif outer != "products":
                options.setdefault(outer, {})[inner] = value
            elif inner == "a":
                options.setdefault(outer, []).append([value])
            else:
                options[outer][-1].append(value)
        return options

    def call(self, function, call, *leading):
        arguments = self.arguments(call)
        owner = self.calls[0].name if call.name[0] == "." else ""
        outputs = {one.name.split(".")[0] for one in call.arrays if set(one.numbers) == {9}}
        names = RESULTS.get(owner + call.name, [])
        omitted = outputs.intersection(names) & arguments.keys() if self.allocates else set()
        if omitted and call.name in TYPED:
            arguments["dtype"] = arguments[names[0]].dtype
        passed = {name: value for name, value in arguments.items() if name not in omitted}
        result = function(*leading, **passed)
        if isinstance(result, mpcore.RnnStep):
            results = result.y, result.hn, result.cn
        else:
            results = result if isinstance(result, tuple) else (result,)
        assert names or result is None, call.name
        for name, own in zip(names, results):
            if name in omitted:
                entries = own.items() if isinstance(own, dict) else ()
                self.arrays.update({f"{name}.{key}": each for key, each in entries} or {name: own})
            elif name != "hn" or name in arguments:  # forward always returns hn
                assert own is arguments.get(name), f"{call.name} returns another {name}"
        return result

    def run(self):
        first = self.calls[0]
        if hasattr(mpcore, first.name) and first.name[0].islower():
            self.call(getattr(mpcore, first.name), first, self.context)
        elif first.name[0].islower():
            self.call(getattr(self.context, first.name), first)
        else:
            dtype = next(one.dtype for one in self.calls[1].arrays if one.dtype.startswith("fp"))
            options = {"dtype": dtype, **first.options}
            self.object = target = getattr(mpcore, first.name)(self.context, **options)
            for call in self.calls[1:]:
                result = self.call(getattr(target, call.name[1:]), call)
                target = result if isinstance(result, mpcore.RnnStep) else target

    def check(self):
        for given in (one for call in self.calls for one in call.arrays if one.wanted is not None):
            name, bound = given.name, 0 if given.is_exact else 6e-6
            is_own = name.startswith("self.")
            got = getattr(self.object, name[len("self."):]) if is_own else self.arrays[name]
            declared = given.shape, given.dtype.replace("fp", "float")
            assert is_own or (got.shape, got.dtype) == declared, name
            numbers = self.read(got)
            assert same(numbers, given.wanted, bound), f"{name}: {numbers}, not {given.wanted}"


def same(got, wanted, bound):
    return len(got) == len(wanted) and all(
        a == b or a != a and b != b or abs(a - b) <= bound * max(1, abs(b))
        for a, b in zip(got, wanted))


def title(calls):
    options = calls[0].options.items()
    return " ".join([calls[0].name, *(f"{name}={value}" for name, value in options)])


@pytest.mark.parametrize("calls", cases(FILE.read_text()), ids=title)
def test_case(calls):
    ways = [{}, {"allocates": True}]
    if TARGET == "host":
        ways.append({"copies": True})
    for way in ways:
        runner = Runner(calls, **way)
        runner.run()
        runner.check()


# Arrays of any length.
FREE = {"xent_count labels", "sum_rows x"}
# The array itself, or another one that no longer matches it; the library checks results of Conv2d.
SENTENCE = r"has (shape|dtype|\d+ (elements|rows))|uint8 is not supported|dtype_out = "


@pytest.mark.parametrize("calls", cases(FILE.read_text()), ids=title)
def test_every_array_is_checked(calls):
    for given in (one for call in calls for one in call.arrays if not one.name.startswith("self.")):
        wrong = [(given.shape, "int32" if given.dtype == "uint8" else "uint8")]
        if f"{calls[0].name} {given.name}" not in FREE:
            wrong.append(((given.shape[0] + 1, *given.shape[1:]), given.dtype))
        for arguments in wrong:
            with pytest.raises((TypeError, ValueError, mpcore.Error), match=SENTENCE):
                Runner(calls, wrong={given.name: arguments}).run()
