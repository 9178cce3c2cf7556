"""Tests of installations: installs the build into scratch folders and uses it through
pkg-config, CMake and the Debian package.  Nothing outside of these folders is changed."""
import os
import re
import shutil
import subprocess
import time

import pytest

PROGRAM = """\
#include <mpcore.h>
#include <stdio.h>
int main(void) { return mp_version() == MP_VERSION ? printf("same\\n") < 0 : 1; }
"""
CMAKE_PROJECT = """\
cmake_minimum_required(VERSION 3.13)
project(scratch C CXX)
find_package(mpcore ${WANTED} REQUIRED)
add_executable(version version.c)
add_executable(train train.cpp)
target_compile_features(train PRIVATE cxx_std_17)
target_link_libraries(version mpcore::mpcore)
target_link_libraries(train mpcore::mpcore)
"""
SOME_OBJECTS = ("obj/capi/core.o", "obj/kernels/gemm/table.o", "obj/host/tma.o",
                "host/kernels/layers/layout.o")


@pytest.fixture(scope="module")
def install(root, build, run):
    """install(prefix, argument..., code=0): output of tools/package/install."""
    return lambda *arguments, code=0: run(root / "tools/package/install", "--build", build, "--prefix", *arguments,
                                          code=code)


@pytest.fixture(scope="module")
def version(build) -> str:
    return re.fullmatch(r"libmpcore\.so\.(\d+\.\d+\.\d+)", (build / "libmpcore.so").resolve().name)[1]


def test_library(prefix, version, run):
    names = sorted(path.name for path in (prefix / "lib").glob("libmpcore.so*"))
    assert names == ["libmpcore.so", f"libmpcore.so.{version.partition('.')[0]}", f"libmpcore.so.{version}"]
    soname = re.search(r"SONAME +(\S+)", run("objdump", "-p", prefix / "lib/libmpcore.so"))[1]
    assert soname in names


def check_hardened(run, path) -> str:
    """Symbols are bound at startup and then read-only; neither the stack nor data are executable;
    functions have stack protectors, and string functions are fortified.
    @return the dynamic section"""
    segments, dynamic, symbols = run("readelf", "-lW", path), run("readelf", "-dW", path), run("readelf", "--dyn-syms", "-W", path)
    assert re.search(r"GNU_RELRO ", segments) and re.search(r"FLAGS.* BIND_NOW", dynamic)
    assert re.search(r"GNU_STACK .* RW ", segments) and not re.search(r"LOAD .* RWE ", segments)
    assert "__stack_chk_fail" in symbols, "-fstack-protector-strong"
    assert re.search(r" __\w+_chk(@|\s)", symbols.replace("__stack_chk_fail", "")), "_FORTIFY_SOURCE"
    return dynamic


def test_hardened_library(prefix, version, run):
    assert not re.search(r"RPATH|RUNPATH|TEXTREL", check_hardened(run, prefix / f"lib/libmpcore.so.{version}"))


@pytest.mark.parametrize("program", ["mpinfo", "mpdemo", "mptune", "mpbench", "mpbench_first_result"])
def test_hardened_programs(prefix, build, run, program):
    paths = list(filter(os.path.exists, (build / program, prefix / "bin" / program)))
    assert paths, f"{program} was not built"
    for path in paths:
        dynamic = check_hardened(run, path)
        assert re.search(r"FLAGS_1.* PIE", dynamic)
        if path.is_relative_to(prefix):
            assert re.findall(r"(\w*PATH).*\[(.*)\]", dynamic) == [("RUNPATH", "$ORIGIN/../lib")]


# Creates and frees a context that multiplies on all workers; then checks threads and mappings.
LOAD_AND_UNLOAD = """
import _ctypes, ctypes, os, struct, sys, time
I32, I64, PTR, SIZE = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_size_t
FP32, N = 3, 256
numbers = (ctypes.c_float * (N * N))()

def use(library):
    config, context = ctypes.create_string_buffer(24), PTR()
    desc = ctypes.create_string_buffer(4096)
    assert library.mp_context_config_init(config, SIZE(24)) == 0
    struct.pack_into("i", config, 4, -2)
    assert library.mp_context_create(ctypes.byref(context), config) == 0
    assert library.mp_gemm_desc_init(desc, SIZE(int(sys.argv[2])), I64(N), I64(N), I64(N), I32(FP32), I32(FP32)) == 0
    assert library.mp_gemm(context, desc, numbers, numbers, None, out, None, None, SIZE(0), None) == 0
    library.mp_build_info()
    library.mp_context_destroy(context)

out = (ctypes.c_float * (N * N))()
resident = []
for i in range(61):
    library = ctypes.CDLL(sys.argv[1])
    use(library)
    _ctypes.dlclose(library._handle)
    resident.append(int(open("/proc/self/statm").read().split()[1]) * 4)
time.sleep(0.2)  # a thread that was joined may be listed for a moment
print(resident[-1] - resident[10], len(os.listdir("/proc/self/task")))
"""


def test_unloading_releases_threads_and_memory(build, root, run):
    header = (root / "capi/check.h").read_text(encoding="utf-8")
    size = re.search(r"X\(mp_gemm_desc_t, (\d+)\)", header)[1]
    kib, threads = map(int, run("python3", "-c", LOAD_AND_UNLOAD, build / "libmpcore.so", size,
                                env={"MP_HOST_THREADS": "4"}).split())
    assert kib < 500, "in 50 rounds, of which each left 31 to 85 KiB"
    assert threads == 1


def without_library_path(run, *command, **others) -> str:
    return run("env", "-u", "LD_LIBRARY_PATH", *command, **others)


def test_installed_mpinfo_runs(prefix, version, run):
    assert f"mpcore {version}" in without_library_path(run, prefix / "bin/mpinfo")


def test_pages_named_by_the_doctor_are_installed(prefix, run):
    for env in ({}, {"MP_GEMM_TUNING": "/nowhere"}):
        said = without_library_path(run, prefix / "bin/mpinfo", "doctor", env=env, code=None)
        pages = re.findall(r"(\S*docs/\S+?\.md)", said)
        assert all(os.path.exists(page) and page.startswith(f"{prefix}/") for page in pages)
    assert f"see {prefix}/share/doc/mpcore/docs/log.md" in said


def test_links_of_installed_pages_resolve(prefix):
    source_only = ("bench/", "bindings", "manual/", "softgpu/", "tools/")
    for page in (prefix / "share/doc/mpcore").rglob("*.md"):
        links = re.findall(r"\]\((?!https?:|#)([^\s)#]+)[)#]", page.read_text(encoding="utf-8"))
        installed = [link for link in links if not link.removeprefix("../").startswith(source_only)]
        assert [link for link in installed if not (page.parent / link).exists()] == [], page
    assert (prefix / "share/doc/mpcore/LICENSE").is_file()


@pytest.mark.parametrize("program", ["mpdemo", "mpinfo"])
def test_manual_page_has_the_text_of_help(prefix, build, version, run, need, program):
    need("man", f"the manual page of {program}")
    page = subprocess.run(["man", "--warnings", "-l", prefix / f"share/man/man1/{program}.1"], capture_output=True, text=True,
                          env=os.environ | {"MANWIDTH": "200", "LC_ALL": "C"}, check=False)
    assert page.stderr == "" and f"mpcore {version}" in page.stdout
    shown = [line.strip() for line in page.stdout.splitlines()]
    assert {line.strip() for line in run(build / program, "--help").splitlines()} <= {*shown, ""}


def test_destdir(install, run, tmp_path):
    install("/opt/mp", "--destdir", tmp_path, "--libdir", "lib64")
    assert (tmp_path / "opt/mp/lib64/libmpcore.so").exists(), "DESTDIR precedes the prefix"
    assert run("grep", "-rlI", tmp_path, tmp_path, code=1) == "", "and in no file"


def test_prefix_must_be_absolute(install):
    assert "--prefix usr must be an absolute path" in install("usr", code=2)


def test_uninstall(install, tmp_path):
    install(tmp_path / "usr")
    others = [tmp_path / "usr/lib/other.so", tmp_path / "usr/share/doc/mpcore/notes"]
    for path in others:
        path.touch()
    install(tmp_path / "usr", "--uninstall")
    assert sorted(path for path in tmp_path.rglob("*") if not path.is_dir()) == others, "other files are kept"


def test_pkg_config(prefix, version, run, cc, need, tmp_path):
    need("pkg-config", "mpcore.pc")
    path = {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    assert run("pkg-config", "--modversion", "mpcore", env=path) == f"{version}\n"
    (tmp_path / "version.c").write_text(PROGRAM)
    flags = run("pkg-config", "--cflags", "--libs", "mpcore", env=path).split()
    run(*cc, tmp_path / "version.c", *flags, "-o", tmp_path / "version")
    assert run(tmp_path / "version", env={"LD_LIBRARY_PATH": str(prefix / "lib")}) == "same\n"


@pytest.fixture(scope="module")
def cmake(root, run, cc, cxx, need, tmp_path_factory):
    """cmake(prefix or folder of the package, version, code=0): (output, build folder)"""
    need("cmake", "the CMake package")
    project = tmp_path_factory.mktemp("project")
    (project / "CMakeLists.txt").write_text(CMAKE_PROJECT)
    (project / "version.c").write_text(PROGRAM)
    shutil.copy(root / "examples/cpp/train.cpp", project)

    def build_it(package, wanted: str, code=0) -> tuple:
        out = tmp_path_factory.mktemp("cmake")
        said = run("cmake", "-S", project, "-B", out, f"-DCMAKE_PREFIX_PATH={package}", f"-DWANTED={wanted}",
                   f"-DCMAKE_C_COMPILER={cc[-1]}", f"-DCMAKE_CXX_COMPILER={cxx[-1]}", code=code)
        if code == 0:
            said += run("cmake", "--build", out)
        return said, out
    return build_it


def test_cmake(prefix, version, cmake, run):
    _, out = cmake(prefix, version.rpartition(".")[0])
    assert without_library_path(run, out / "version") == "same\n", "its target is enough to build C"
    assert "weights " in without_library_path(run, out / "train", "host"), "and C++"
    said, _ = cmake(prefix, "99.0", code=1)
    assert 'with requested version "99.0"' in " ".join(said.split())


def test_cmake_of_a_moved_tree(install, cmake, run, tmp_path):
    install("/opt/mp", "--destdir", tmp_path / "stage", "--libdir", "lib64")
    (tmp_path / "stage/opt/mp").rename(tmp_path / "moved")
    _, out = cmake(tmp_path / "moved/lib64/cmake/mpcore", "")
    assert without_library_path(run, out / "version") == "same\n"


@pytest.fixture(scope="module")
def package(root, build, run, need):
    need("dh", "the Debian package")
    return root / run(root / "tools/package/make_deb", build).strip()


def test_deb(root, build, run, package, version, tmp_path):
    first = package.read_bytes()
    time.sleep(1)  # makes the current date differ
    run(root / "tools/package/make_deb", build)
    assert package.read_bytes() == first, "two builds of it are equal"
    assert run("dpkg-deb", "-f", package, "Version") == f"{version}\n"
    assert "libstdc++6" in run("dpkg-deb", "-f", package, "Depends"), "it depends on the C and C++ runtimes"
    assert {line.split()[1] for line in run("dpkg-deb", "--contents", package).splitlines()} == {"root/root"}
    run("dpkg-deb", "-x", package, tmp_path / "root")
    run("dpkg-deb", "-e", package, tmp_path / "control")
    run("md5sum", "--quiet", "-c", tmp_path / "control/md5sums", cwd=tmp_path / "root")
    library = next((tmp_path / "root").rglob("libmpcore.so"))
    assert f"mpcore {version}" in run(tmp_path / "root/usr/bin/mpinfo", env={"LD_LIBRARY_PATH": str(library.parent)})


def test_lintian_finds_nothing_in_the_deb(run, need, package):
    need("lintian", "lintian on the Debian package")
    assert run("lintian", "--allow-root", "--fail-on", "none", package) == ""


def test_cmake_finds_the_deb(run, package, version, cmake, tmp_path):
    run("dpkg-deb", "-x", package, tmp_path / "root")
    cmake(tmp_path / "root/usr", version)


def test_deb_dates_are_source_date_epoch(root, build, run, package):
    """Applies also to files older than SOURCE_DATE_EPOCH."""
    first = package.read_bytes()
    tomorrow = int(time.time()) + 86400
    run(root / "tools/package/make_deb", build, env={"SOURCE_DATE_EPOCH": str(tomorrow), "TZ": "UTC"})
    listings = [run("bash", "-c", 'dpkg-deb "$0" "$1" | TZ=UTC tar -tv', part, package).splitlines()
                for part in ("--ctrl-tarfile", "--fsys-tarfile")]
    package.write_bytes(first)
    day = time.strftime("%Y-%m-%d", time.gmtime(tomorrow))
    for listing in listings:
        assert listing and {line.split()[3] for line in listing} == {day}, listing


def test_same_bytes_from_other_folders(root, run, cxx, tmp_path):
    if subprocess.run(["git", "rev-parse", "--git-dir"], cwd=root, capture_output=True, check=False).returncode != 0:
        pytest.skip("reproducible objects (not a git checkout)")
    folders = [tmp_path / "here", tmp_path / "elsewhere_with_a_longer_name"]
    for folder in folders:
        folder.mkdir()
        run("bash", "-c", 'git ls-files -z | tar --null -T - -c | tar -x -C "$0"', folder)
        run("make", "-C", folder, "-s", "NVCC=", "BUILD=build", *(f"build/{one}" for one in SOME_OBJECTS),
            env={name: "" for name in ("MAKEFLAGS", "MFLAGS") if name in os.environ})
        run(*cxx, "-shared", *(f"build/{one}" for one in SOME_OBJECTS), "-o", "build/some.so", cwd=folder)
    for name in (*SOME_OBJECTS, "some.so"):
        here, elsewhere = ((folder / "build" / name).read_bytes() for folder in folders)
        assert here == elsewhere, f"{name} has the same bytes in both"
