"""fpm.toml: the Fortran modules as a dependency of a package that fpm builds."""
import shutil

import pytest


@pytest.fixture(scope="module")
def fpm(build, run, need):
    """fpm(argument..., cwd=...): its output, with the library of the build"""
    need("gfortran", "the Fortran modules for fpm")
    need("fpm", "the Fortran modules for fpm")
    if "Fortran" not in run("fpm", "--version", code=None):
        pytest.skip("the Fortran modules for fpm (the fpm here is another program)")
    library = {"LIBRARY_PATH": str(build), "LD_LIBRARY_PATH": str(build)}
    return lambda *arguments, **others: run("fpm", *arguments, env=library, **others)


@pytest.fixture(scope="module")
def weights(example) -> str:
    """The last line of the example, compiled without fpm."""
    return example("train", "fortran")("host").splitlines()[-1]


@pytest.fixture
def package(root, tmp_path):
    """package(dependency): a package with the example as program and this dependency on mpcore"""
    def make(dependency: str):
        (tmp_path / "user/app").mkdir(parents=True)
        shutil.copy(root / "examples/fortran/train.f90", tmp_path / "user/app/main.f90")
        (tmp_path / "user/fpm.toml").write_text(f'name = "user"\n[dependencies]\nmpcore = {{ {dependency} }}\n')
        return tmp_path / "user"
    return make


@pytest.fixture
def sources(root, tmp_path):
    """A repository with the files that fpm needs."""
    for folder in ("bindings/fortran", "examples/fortran"):
        shutil.copytree(root / folder, tmp_path / "mpcore" / folder)
    shutil.copy(root / "fpm.toml", tmp_path / "mpcore")
    return tmp_path / "mpcore"


def test_path(fpm, package, sources, weights):
    user = package('path = "../mpcore"')  # relative: fpm supports no other
    assert fpm("run", "--", "host", cwd=user).splitlines()[-1] == weights
    assert not list(user.glob("build/**/*test*")), "the tests of the modules are not built"


def test_git(fpm, package, sources, weights, run, need):
    need("git", "the Fortran modules as a repository")
    git = ["git", "-c", "user.name=tests", "-c", "user.email=tests@localhost", "-C", sources]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"], ["tag", "v1"]):
        run(*git, *command)
    user = package(f'git = "file://{sources}", tag = "v1"')
    assert fpm("run", "--profile", "release", "--", "host", cwd=user).splitlines()[-1] == weights


def test_example(fpm, sources, weights):
    assert fpm("run", "--example", "train", "--", "host", cwd=sources).splitlines()[-1] == weights


def test_manifest(root):
    tomllib = pytest.importorskip("tomllib", reason="fpm.toml by itself (no tomllib before Python 3.11)")
    manifest = tomllib.loads((root / "fpm.toml").read_text(encoding="utf-8"))
    assert manifest["build"]["link"] == "mpcore"
    assert (root / manifest["library"]["source-dir"] / "mpcore.f90").exists()
    programs = [root / one["source-dir"] / one["main"] for one in manifest["example"]]
    assert programs == sorted((root / "examples/fortran").glob("*.f90"), reverse=True)
