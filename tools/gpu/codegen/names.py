"""Readable names of kernels: gemm_wmma<half, MP_OP_N, MP_OP_T, WmmaTile<64, 64, 32, 32, 4, 4>>."""

import enum
import importlib
import pathlib
import re
import subprocess
import sys
import types

BINDING = pathlib.Path(__file__).resolve().parents[3] / "bindings/python/mpcore"
DEVICE_NAMESPACES = re.compile(r"mp::|cuda::|\(anonymous namespace\)::")


def demangle(names):
    """Demangles names, without the hash of anonymous namespaces, which differs between folders."""
    run = subprocess.run(
        ["c++filt"], input="\n".join(names), text=True, capture_output=True, check=True)
    return run.stdout.splitlines()


def enumerators():
    """Returns {"mp_op": {0: "MP_OP_N", ...}, ...} of the public headers."""
    package = types.ModuleType("raw")  # the package mpcore would load the library
    package.__path__ = [str(BINDING)]
    sys.modules["raw"] = package
    _sys = importlib.import_module("raw._sys")
    return {name[: -len("_t")]: {each.value: each.name for each in kind}
            for name, kind in vars(_sys).items() if isinstance(kind, enum.EnumMeta)}


def without_arguments(signature):
    """Converts "void f<(mp_op)0>(Args)" to "f<(mp_op)0>"."""
    signature = signature.removeprefix("void ").replace("(anonymous namespace)", "{anonymous}")
    depth = 0
    for at, letter in enumerate(signature):
        if letter == "(" and depth == 0:
            signature = signature[:at]
            break
        depth += (letter == "<") - (letter == ">")
    return signature.replace("{anonymous}", "(anonymous namespace)").replace("> >", ">>")


def readable(function, enums):
    """Returns a readable name; `function`: without arguments."""

    def enumerator(found):
        return enums.get(found[1], {}).get(int(found[2]), found[0])

    return re.sub(r"\((\w+)\)(\d+)", enumerator, DEVICE_NAMESPACES.sub("", function))
