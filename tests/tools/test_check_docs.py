"""Tests of tools/check/check_docs: the list of environment variables is complete; errors in it
are found."""
import pytest

pytest.importorskip("pycparser", reason="the check of the guide (no pycparser)")
TOOL = "tools/check/check_docs"


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs/environment.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["check/check_docs", "docs/make_docs"])
def test_help_is_not_a_folder(root, run, name):
    assert run(root / "tools" / name, "--help").startswith("usage: ")


def test_all_variables_are_listed(tool, page):
    assert tool.unlisted_variables(page) == []
    assert tool.unread_variables(page) == []


@pytest.mark.parametrize("name", ["MP_LOG", "MP_AUTOCAST_IGNORE_PERFORMANCE", "MP_AUTOCAST_INFER_REMOVE", "MPCORE_DIR",
                                  "MP_TEST_DEVICE", "SOFTGPU_FAIL", "ARCHS", "FUZZ_SECONDS"])
def test_a_missing_variable_is_found(tool, page, name):
    assert tool.unlisted_variables(page.replace(f"`{name}`", "`PATH`")) == [name]


def test_a_variable_that_is_not_read_is_found(tool, page):
    assert tool.unread_variables(page.replace("| `PATH` |", "| `MP_COLOR`, `PATH` |")) == ["MP_COLOR"]
