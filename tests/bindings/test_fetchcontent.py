"""CMakeLists.txt: a project that fetches mpcore and builds it as a subproject.  Building takes
minutes, so either the library exists (MPCORE_BUILD), or a Makefile of one target replaces the
real one."""
import shutil

import pytest

PROJECT = """\
cmake_minimum_required(VERSION 3.14)
project(scratch C CXX)
include(FetchContent)
FetchContent_Declare(mpcore @WHERE@)
FetchContent_MakeAvailable(mpcore)
add_executable(version version.c)
target_link_libraries(version mpcore::mpcore)
add_executable(train train.cpp)
target_compile_features(train PRIVATE cxx_std_17)
target_link_libraries(train mpcore::mpcore)
if(NOT EXISTS "${mpcore_FORTRAN_DIR}/mpcore.f90")
  message(FATAL_ERROR "no Fortran modules in ${mpcore_FORTRAN_DIR}")
endif()
"""
PROGRAM = """\
#include <mpcore.h>
#include <stdio.h>
int main(void) { return mp_version() == MP_VERSION ? printf("same\\n") < 0 : 1; }
"""
# Copies the finished library to the build folder, and records variables.
MAKEFILE = """\
lib:
	@mkdir -p $(BUILD) && cp -a $(FINISHED)/libmpcore.so* $(BUILD)
	@echo 'NVCC: $(origin NVCC) "$(NVCC)"' > $(BUILD)/output
	@echo 'ARCHS: "$(ARCHS)"' >> $(BUILD)/output
	@echo 'compilers: $(origin CC) $(origin CXX)' >> $(BUILD)/output
	@echo 'jobs: $(MAKEFLAGS)' >> $(BUILD)/output
"""
OUTPUTS = {"version": "same\n", "train": "weights "}
GENERATORS = {"Ninja": "ninja", "Unix Makefiles": "make"}


@pytest.fixture
def sources(root, tmp_path):
    """The files that CMake needs, with the replaced Makefile."""
    folder = tmp_path / "mpcore"
    for part in ("include", "bindings/fortran"):
        shutil.copytree(root / part, folder / part)
    (folder / "tools").mkdir()
    shutil.copy(root / "tools/version", folder / "tools")
    shutil.copy(root / "CMakeLists.txt", folder)
    (folder / "Makefile").write_text(MAKEFILE)
    return folder


@pytest.fixture
def configure(root, run, cc, cxx, need, tmp_path):
    """configure(where, generator, argument..., folder="out", code=0): output and build folder"""
    def configure_it(where: str, generator: str, *arguments, folder="out", code=0) -> tuple:
        need("cmake", "FetchContent")
        need(GENERATORS[generator], f"FetchContent with {generator}")
        project = tmp_path / "project"
        project.mkdir(exist_ok=True)
        (project / "CMakeLists.txt").write_text(PROJECT.replace("@WHERE@", where))
        (project / "version.c").write_text(PROGRAM)
        shutil.copy(root / "examples/cpp/train.cpp", project)
        out = tmp_path / folder
        output = run("cmake", "-G", generator, "-S", project, "-B", out, f"-DCMAKE_C_COMPILER={cc[-1]}",
                   f"-DCMAKE_CXX_COMPILER={cxx[-1]}", *arguments, code=code)
        return " ".join(output.split()), out
    return configure_it


@pytest.fixture
def works(run):
    """works(build folder, programs=("version",)): builds programs of the project and runs them."""
    def try_it(out, programs=("version",)):
        # Ignores the variables of a make that runs the tests.
        others = [word for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "NVCC", "ARCHS") for word in ("-u", name)]
        run("env", *others, "cmake", "--build", out, "-j", 2, "--target", *programs)
        for program in programs:
            assert OUTPUTS[program] in run("env", "-u", "LD_LIBRARY_PATH", out / program, "host")
    return try_it


@pytest.mark.parametrize("generator", GENERATORS)
def test_existing_library(root, build, configure, works, generator):
    _, out = configure(f'SOURCE_DIR "{root}"', generator, f"-DMPCORE_BUILD={build}")
    works(out, ("version", "train"))


def test_git(sources, build, configure, works, run, need):
    need("git", "FetchContent of a repository")
    git = ["git", "-c", "user.name=tests", "-c", "user.email=tests@localhost", "-C", sources]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"], ["tag", "v1"]):
        run(*git, *command)
    _, out = configure(f'GIT_REPOSITORY "file://{sources}" GIT_TAG v1', "Unix Makefiles", f"-DMPCORE_BUILD={build}")
    works(out)


@pytest.mark.parametrize("generator", GENERATORS)
def test_library_built_by_make(sources, build, configure, works, generator):
    options = ["-DMPCORE_CUDA=OFF", "-DMPCORE_ARCHS=75;90a", f"-DMPCORE_MAKE_ARGS=FINISHED={build}"]
    _, out = configure(f'SOURCE_DIR "{sources}"', generator, *options)
    works(out)
    output = (out / "_deps/mpcore-build/make/output").read_text()
    assert 'NVCC: command line ""\nARCHS: "75 90a"\ncompilers: command line command line\n' in output
    assert ("--jobserver" in output) == (generator == "Unix Makefiles"), "a nested make shares the jobs"


def test_nvcc_is_left_to_the_makefile(sources, build, configure, works):
    _, out = configure(f'SOURCE_DIR "{sources}"', "Unix Makefiles", f"-DMPCORE_MAKE_ARGS=FINISHED={build}")
    works(out)
    assert 'NVCC: undefined ""\nARCHS: ""\n' in (out / "_deps/mpcore-build/make/output").read_text()


def test_missing_library(root, configure, tmp_path):
    output, _ = configure(f'SOURCE_DIR "{root}"', "Unix Makefiles", f"-DMPCORE_BUILD={tmp_path}", code=1)
    assert "MPCORE_BUILD = " in output and "does not exist" in output


def test_blank_in_the_path(sources, configure):
    output, _ = configure(f'SOURCE_DIR "{sources}"', "Unix Makefiles", folder="my build", code=1)
    assert "the path must not contain a blank" in output
