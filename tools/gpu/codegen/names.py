"""Readable names of kernels: gemm_wmma<half, MP_OP_N, MP_OP_T, WmmaTile<64, 64, 32, 32, 4, 4>>."""

import pathlib
import re
import subprocess

HEADER = pathlib.Path(__file__).resolve().parents[3] / "include/mpcore.h"
DEVICE_NAMESPACES = re.compile(r"mp::|cuda::|\(anonymous namespace\)::")


def demangle(names):
    """The same names as C++; the hash of an anonymous namespace is gone, as it differs between folders."""
    run = subprocess.run(
        ["c++filt"], input="\n".join(names), text=True, capture_output=True, check=True)
    return run.stdout.splitlines()


def enumerators():
    """{"mp_op": {0: "MP_OP_N", ...}, ...} of mpcore.h."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    enums = {}
    for name, body in re.findall(r"typedef enum (\w+) \{(.*?)\}", text, re.S):
        value, values = -1, enums.setdefault(name, {})
        for enumerator, number in re.findall(r"(\w+)\s*(?:=\s*(\d+))?\s*(?:,|$)", body):
            value = int(number) if number else value + 1
            values[value] = enumerator
    return enums


def without_arguments(signature):
    """ "void f<(mp_op)0>(Args)" -> "f<(mp_op)0>"."""
    signature = signature.removeprefix("void ").replace("(anonymous namespace)", "{anonymous}")
    depth = 0
    for at, letter in enumerate(signature):
        if letter == "(" and depth == 0:
            signature = signature[:at]
            break
        depth += (letter == "<") - (letter == ">")
    return signature.replace("{anonymous}", "(anonymous namespace)").replace("> >", ">>")


def readable(function, enums):
    """`function`: without arguments."""

    def enumerator(found):
        return enums.get(found[1], {}).get(int(found[2]), found[0])

    return re.sub(r"\((\w+)\)(\d+)", enumerator, DEVICE_NAMESPACES.sub("", function))
