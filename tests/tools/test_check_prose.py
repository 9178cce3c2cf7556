"""tools/check/check_prose: each rule finds its mistake, and accepts the text that replaces it."""
import json
import runpy
import subprocess
import types

import pytest

# Rule, file, text that must be found, text that must not.
RULES = [
    ("doc-opener", "a.h", "/** What a kernel does */\nint x;", "/** Work of a kernel */\nint x;"),
    ("doc-opener", "a.cpp", "// Those that are read twice\nint x;", "// Rows that are read twice\nint x;"),
    ("doc-opener", "a.h", "int x;  ///< of the device", "int x;  ///< in bytes"),
    ("doc-opener", "a.cpp", "// of the device\nint x;", "int y;\nf();  // of the device\nint x;"),
    ("speech", "a.cu", "// The kernel asks the host for memory.", "// The caller asks the host for memory."),
    ("speech", "a.cpp", 'f("the driver was told to stop");', 'f("the driver was stopped here");'),
    ("speech", "a.py", "# threads do not know the order", "# the order of threads is unspecified"),
    ("what-clause", "a.rs", "// frees what is left", "// frees the remaining blocks"),
    ("what-clause", "a.md", "It prints what the kernels have read.", "Do you know what is printed?"),
    ("nobody", "a.cpp", "// a value that nobody reads", "// an unread value"),
    ("archaic", "a.md", "Mended: a crash.", "Fixed: a crash."),
    ("of-its-own", "a.h", "// a stream of its own.", "// a separate stream."),
    ("as-clause", "a.cpp", "// runs as fast as a copy is", "// runs as fast as a copy"),
    ("is-no", "a.md", "The list is no tensor.", "The list is no longer a tensor."),
    ("stands", "a.cu", "// The flag stands beside the scale.", "// The flag is stored beside the scale."),
    ("where-if", "a.mk", "# skipped where there is no GPU", "# skipped if there is no GPU"),
    ("of-fragment", "a.cpp", "// The first word. Of a row.", "// The first word. Of course it is read."),
    ("so-many", "a.f90", "! waits so many steps", "! waits for n steps"),
    ("md-clause", "a.md", "What packages lack, `make` installs.", "`make` installs missing packages."),
    ("md-length", "a.md", "word " * 36 + "end.", "word " * 34 + "end."),
    ("long-line", "a.h", "// " + "x" * 98, "// " + "x" * 97),
    ("missing-file", "a.cpp", "// See b.cpp.", "// See a.cpp, and CUTLASS's b.cpp."),
]

SUBJECTS = [
    ("commit-length", "gemm: add " + "x" * 63, "gemm: add " + "x" * 62),
    ("commit-form", "gemm: what is too large is refused", "gemm: reject sizes of 2^33 and more"),
    ("commit-form", "fixup! gemm: reject it", "gemm, conv: fix the split of k"),
    ("commit-form", "gemm: rejected large sizes", "gemm: embed a table"),
    ("commit-form", "gemm: split k; add a test", "gemm: pass the workspace on"),
    ("commit-form", "reject large sizes", "docs: process every page"),
]


@pytest.fixture(scope="module")
def tool(root):
    return types.SimpleNamespace(**runpy.run_path(str(root / "tools/check/check_prose"), run_name="check_prose"))


@pytest.mark.parametrize("rule, file, bad, good", RULES)
def test_a_rule_finds_its_mistake_alone(tool, rule, file, bad, good):
    check = lambda text: {found.rule for found in tool.check_text(file, text + "\n", {file}, set())}
    assert (check(bad), check(good)) == ({rule}, set())


@pytest.mark.parametrize("rule, bad, good", SUBJECTS)
def test_commit_subjects_are_imperative(tool, rule, bad, good):
    check = lambda subject: [found.rule for found in tool.check_subject("1234567", subject)]
    assert (check(bad), check(good)) == ([rule], [])


def test_every_rule_has_a_case_and_advice(tool):
    assert {rule for rule, *_ in RULES + SUBJECTS} == set(tool.ADVICE)


def test_generated_files_and_literals_are_skipped(tool):
    for file, text in [("a.py", '# Made by generate\n# nobody'), ("a.cpp", "auto x = R\"(// nobody)\", y = '\"';\n"),
                       ("a.md", "```\nnobody\n```\n"), ("a.txt", "nobody\n")]:
        assert not tool.check_text(file, text, {file}, set()), text


def test_the_baseline_only_shrinks(root, tmp_path):
    """A file may not have more findings than listed; --update accepts fewer, and moved files, but no growth."""
    def git(*command):
        subprocess.run(["git", "-C", tmp_path, *command], check=True, capture_output=True)

    def check(*options):
        done = subprocess.run([root / "tools/check/check_prose", "--root", tmp_path, "--baseline", baseline, *options],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    baseline, source = tmp_path / "baseline.json", tmp_path / "a.cpp"
    git("init", "-q")
    source.write_text("int x;\n\n// a nobody\n\nint y;\n\n// a nobody\n")
    git("add", "a.cpp")
    assert check("--update")[0] == 0
    assert json.loads(baseline.read_text()) == {"a.cpp": {"nobody": 2}}
    assert check()[0] == 0

    source.write_text(source.read_text() + "\n// a whoever\n")
    status, text = check()
    assert status == 1 and "a.cpp:9: nobody: a whoever" in text and "3 findings, 2 allowed" in text
    assert check("--update")[0] == 1

    source.write_text("// a nobody\n")
    git("mv", "a.cpp", "b.cpp")
    assert check()[0] == 1
    assert check("--update")[0] == 0
    assert json.loads(baseline.read_text()) == {"b.cpp": {"nobody": 1}}
