"""mypy --strict of the Python package and of programs that use it."""
import pytest

RIGHT = """\
import ctypes

import mpcore
from mpcore import _sys

with mpcore.Context("host") as context:
    x = context.zeros((2, 3), "float16")
    w = context.zeros((3, 4), "float16")
    y = mpcore.gemm(context, x, w, activation="relu")
    masters = mpcore.TensorList(context, [w.T])
    major: int = mpcore.version()[0]
    bytes_of_x: int = x.nbytes

    desc = _sys.mp_gemm_desc_default(2, 4, 3, _sys.MP_FP16, _sys.MP_FP32)
    desc.ld_a, desc.alpha = 3, 0.5
    size = ctypes.c_size_t()
    mpcore.check(mpcore.lib.mp_gemm_workspace_size(context.handle, desc, None, ctypes.byref(size)))
    print(mpcore.build_info(), mpcore.lib.mp_last_error().decode(), major, bytes_of_x, y)
"""
# Line and kind of its error.  Fields of raw structs are checked by ctypes, when the program runs.
WRONG = [
    ('mpcore.Context("host").nam', "attr-defined"),
    ('mpcore.version() + "1"', "operator"),
    ("mpcore.lib.mp_gemm(1)", "call-arg"),
    ('mpcore.lib.mp_dtype_size("fp16")', "arg-type"),
    ('_sys.mp_gemm_desc_default("2", 4, 3, 1, 3)', "arg-type"),
    ("mpcore.gemm(1, 2)", "call-arg"),
]


@pytest.fixture(scope="module")
def mypy(root, run, need, tmp_path_factory):
    """mypy(argument..., code=0): its output.  numpy may be missing or without types."""
    need("mypy", "the types of the Python package")
    cache = tmp_path_factory.mktemp("mypy")
    return lambda *arguments, code=0: run("mypy", "--strict", "--ignore-missing-imports", "--cache-dir", cache,
                                          *arguments, code=code, cwd=cache,
                                          env={"MYPYPATH": str(root / "bindings/python")})


def test_package(root, mypy):
    mypy(root / "bindings/python/mpcore")


def test_program(mypy, tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    mypy(tmp_path / "right.py")


def test_injected_errors_are_found(mypy, tmp_path):
    lines = ["import mpcore", "from mpcore import _sys", *(line for line, _ in WRONG)]
    (tmp_path / "wrong.py").write_text("\n".join(lines) + "\n")
    output = mypy(tmp_path / "wrong.py", code=1)
    for number, (line, kind) in enumerate(WRONG, 3):
        found = [text for text in output.splitlines() if f"wrong.py:{number}: error: " in text]
        assert any(f"[{kind}]" in text for text in found), f"{line}: {found}"
