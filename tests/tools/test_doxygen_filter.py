"""Tests of tools/docs/doxygen_filter: names of the API become links, except in the text of a
link."""
import sys

import pytest

pytest.importorskip("pycparser", reason="the filter of the manual (no pycparser)")


@pytest.fixture
def filtered(root, run, tmp_path):
    """filtered(text): the text of a page after the filter."""
    def filter_it(text: str) -> str:
        (tmp_path / "page.md").write_text(text + "\n", encoding="utf-8")
        return run(sys.executable, "-B", root / "tools/docs/doxygen_filter", tmp_path / "page.md").strip()
    return filter_it


@pytest.mark.parametrize("text, expected", [
    ("`mp_gemm` runs", '<code>@ref mp_gemm "mp_gemm"</code> runs'),
    ("`mp_param_group.lr`", '<code>@ref mp_param_group_t "mp_param_group.lr"</code>'),
    ("`make`", "`make`"),
    ("[the step](step.md#ranks)", "[the step](step.html#step_ranks)"),
    ("[`mp_gemm`](step.md), `mp_cast`", '[`mp_gemm`](step.html), <code>@ref mp_cast "mp_cast"</code>'),
    ("[`mp_gemm`](../kernels/README.md)", '<code>@ref mp_gemm "mp_gemm"</code>'),
    ("    `mp_gemm`", "`mp_gemm`"),
])
def test_names_in_a_page_become_links_outside_links(filtered, text, expected):
    assert filtered(text) == expected
