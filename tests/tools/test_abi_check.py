"""Tests of tools/check/abi_check on injected changes of the header."""
import re
import shutil

import pytest

ALLOWED = {
    "a new function": (r"^MP_API uint32_t mp_version.*", r"\g<0>\nMP_API int mp_new(int x);"),
    "a new enumerator": (r"^  MP_FP32 = 3,.*", "  MP_FP32 = 3, MP_NEW = 99,"),
    "a field at the end of a struct": (r"^\} mp_param_group_t;", r"  float added;\n\g<0>"),
}
# The change, and the name that abi_check reports.
REFUSED = {
    "a function less": (r"^MP_API size_t mp_dtype_size.*", "", "mp_dtype_size"),
    "another parameter": (r"mp_dtype_size\(mp_dtype_t dtype\)", "mp_dtype_size(int64_t dtype)", "mp_dtype_size"),
    "another number": (r"MP_ACT_GELU = 2", "MP_ACT_GELU = 7", "MP_ACT_GELU"),
    "a field less": (r"^  float max_grad_norm;.*", "", "max_grad_norm"),
    "the last field less": (r"^  float lr_end;.*", "", "lr_end"),
    "a field in between": (r"^  float max_grad_norm;", r"  double added; \g<0>", "added"),
    "another type of the same size": (r"^  float max_grad_norm;", "  int32_t max_grad_norm;", "max_grad_norm"),
    "a change hidden behind a new field": (
        r"(?s)^  float lr_end;(.*?)^\} mp_param_group_t;", r"  int32_t lr_end;\1  float added;\n} mp_param_group_t;", "lr_end"),
}


def change_headers(root, folder, pattern: str, replacement: str):
    """Copies the public headers with the change to `folder`."""
    headers, is_changed = folder / "include", False
    shutil.copytree(root / "include", headers, dirs_exist_ok=True)
    for header in headers.rglob("*.h"):
        text = header.read_text(encoding="utf-8")
        changed = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        is_changed |= changed != text
        header.write_text(changed, encoding="utf-8")
    assert is_changed, "nothing is injected"
    return headers


@pytest.fixture(scope="module")
def check(root, cc, run, need, tmp_path_factory):
    """check(pattern, replacement, code=0): output of abi_check for the headers with that change."""
    need("abidiff", "compatible headers")
    tool, folder = root / "tools/check/abi_check", tmp_path_factory.mktemp("abi")
    run(tool, "--write", "--baseline", folder / "baseline.abi", cc[-1])

    def check_it(pattern: str, replacement: str, code=0) -> str:
        headers = change_headers(root, folder, pattern, replacement)
        return run(tool, "--baseline", folder / "baseline.abi", "--include", headers, cc[-1], code=code)
    return check_it


def test_compatible_with_itself(check):
    assert "abi: compatible with" in check(r"\Z", "\n")


@pytest.mark.parametrize("change", ALLOWED)
def test_allows(check, change):
    assert "abi: compatible with" in check(*ALLOWED[change])


@pytest.mark.parametrize("change", REFUSED)
def test_refuses(check, change):
    pattern, replacement, name = REFUSED[change]
    assert name in check(pattern, replacement, code=1)


def test_major_version_may_change_everything(root, run, cc, tmp_path, need):
    need("abidiff", "compatible headers")
    change_headers(root, tmp_path, r"^(#define MP_VERSION_MAJOR) 0", r"\1 1")
    header = next(path for path in (tmp_path / "include").rglob("*.h") if "float max_grad_norm;" in path.read_text())
    header.write_text(re.sub(r"(?m)^  float max_grad_norm;.*", "", header.read_text()))
    said = run(root / "tools/check/abi_check", "--include", tmp_path / "include", cc[-1])
    assert "nothing released with major version 1" in said
