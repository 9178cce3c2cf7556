"""Tests of tools/check/count_lines in a scratch repository: growth since the tag."""


def test_count_lines(root, run, tmp_path):
    def git(*arguments):
        run("git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments, cwd=tmp_path)

    def count(*arguments) -> str:
        return run(root / "tools/check/count_lines", *arguments, cwd=tmp_path)

    git("init", "-q")
    for name in ("Makefile", "kernels/gemm/deep/a.h", "capi/b.h", "bench/data.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one\ntwo\n")
    git("add", ".")
    git("commit", "-qm", "first")
    assert count() == "      2  .\n      2  capi\n      2  kernels/gemm\n      6  in all\n"
    git("tag", "v1")
    (tmp_path / "capi/b.h").write_text("one\ntwo\nthree\n")
    (tmp_path / "kernels/gemm/deep/a.h").unlink()
    assert count() == ("      2  .\n      3  capi  +1 since v1\n      0  kernels/gemm  -2 since v1\n"
                       "      5  in all  -1 since v1\n")
    assert "kernels/gemm  -2 since HEAD" in count("--base", "HEAD")
