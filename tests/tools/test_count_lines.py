"""Tests of tools/check/count_lines in a scratch repository: budgets and their reasons."""
import subprocess

import pytest


class Repository:
    def __init__(self, folder, tool):
        self.folder, self.tool = folder, tool
        self.git("init", "-q")

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=self.folder, check=True)

    def write(self, name: str, lines: int):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("line\n" * lines)
        self.git("add", name)

    def update(self) -> str:
        said = self.count("--update")[0]
        self.git("add", ".")
        return said

    def count(self, *arguments, root=None):
        """Returns (output, exit code)."""
        done = subprocess.run([self.tool, "--root", root or self.folder, *arguments], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout, done.returncode


@pytest.fixture(name="repository")
def fixture_repository(root, tmp_path):
    """Two folders with budgets, kernels/gemm apart from kernels."""
    made = Repository(tmp_path, root / "tools/check/count_lines")
    for name in ("Makefile", "kernels/a.h", "kernels/gemm/deep/a.h", "capi/b.h", "bench/data.csv"):
        made.write(name, 2)
    made.write("tools/check/line_budgets", 0)
    (tmp_path / "tools/check/line_budgets").write_text("2  .\n2  capi\n2  kernels\n2  kernels/gemm\n")
    made.git("add", ".")
    made.git("commit", "-qm", "first")
    return made


def test_files_of_any_kind_and_name(repository):
    unchanged = repository.count()
    assert unchanged == ("      2  .\n      2  capi\n      2  kernels\n      2  kernels/gemm\n"
                         "      8  in all\nlines: ok\n", 0)
    (repository.folder / "kernels/link.h").symlink_to("nowhere")
    repository.git("init", "-q", "nested")
    (repository.folder / "nested/a.h").write_text("line\n")
    assert repository.count() == unchanged
    (repository.folder / "kernels/\u00e4\t.h").write_text("line\n")
    assert "      3  kernels\n" in repository.count()[0]
    repository.git("add", "kernels")
    assert "      4  kernels\n" in repository.count()[0]  # git counts a link as a line


def test_growth_beyond_a_budget_fails(repository):
    repository.write("kernels/gemm/deep/a.h", 5)
    repository.write("softgpu/isa/a.h", 3)
    (repository.folder / "kernels/new.h").write_text("line\n")
    output, code = repository.count()
    assert code == 1 and "lines: kernels/gemm has 5 lines, its budget is 2; remove lines, or run" in output
    assert "lines: kernels has 3 lines, its budget is 2;" in output and "lines: softgpu has 3 lines, its budget is 0" in output
    (repository.folder / "kernels/new.h").unlink()
    repository.git("mv", "kernels/gemm", "gemm")
    assert repository.update() == "budget: gemm +5: REASON\nbudget: softgpu +3: REASON\n"
    assert (repository.folder / "tools/check/line_budgets").read_text() == \
        "     2  .\n     2  capi\n     5  gemm\n     2  kernels\n     3  softgpu\n"
    assert repository.count()[1] == 0


@pytest.mark.parametrize("body, is_allowed", [
    ("", False), ("budget: capi +3: checks of sizes", True), ("budget: capi +4: checks of sizes", False),
    ("budget: capi +3:", False), ("budget: kernels +3: checks of sizes", False)])
def test_a_raise_requires_a_reason(repository, body, is_allowed):
    repository.write("capi/b.h", 5)
    assert repository.update() == "budget: capi +3: REASON\n"
    assert repository.count()[1] == 0  # not committed yet
    repository.git("commit", "-qm", f"capi: check sizes\n\nWhy.\n{body}\n")
    output, code = repository.count()
    assert code == (0 if is_allowed else 1)
    assert ('lacks a line "budget: capi +3: REASON"' in output) != is_allowed
    repository.git("commit", "-qm", "capi: explain\n\nbudget: capi +3: checks of sizes", "--allow-empty")
    assert repository.count()[1] == 0


def test_only_raises_after_main_require_a_reason(repository):
    repository.write("capi/b.h", 5)
    repository.update()
    repository.git("commit", "-qm", "capi: check sizes")
    assert repository.count()[1] == 1
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD")
    repository.write("capi/b.h", 4)
    assert repository.update() == ""
    repository.git("commit", "-qam", "capi: remove a line")
    assert repository.count()[1] == 0


def test_without_history_only_lines_are_checked(repository, tmp_path_factory):
    repository.write("capi/b.h", 5)
    repository.update()
    repository.git("commit", "-qm", "capi: check sizes")
    shallow = tmp_path_factory.mktemp("shallow")
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.folder}", str(shallow))
    output, code = repository.count(root=shallow)
    assert code == 0 and "lines: shallow clone, commit messages are not checked" in output
    (shallow / "capi/b.h").write_text("line\n" * 9)
    assert repository.count(root=shallow)[1] == 1
    (repository.folder / "capi/tarball").mkdir()
    for tarball in (tmp_path_factory.mktemp("tarball"), repository.folder / "capi/tarball"):
        assert repository.count(root=tarball) == ("lines: not a git checkout, lines are not counted\n", 0)
