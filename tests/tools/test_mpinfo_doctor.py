"""Tests of `mpinfo doctor`: no findings on a healthy machine, and every problem that a test can
create."""
import json
import os
import re
import subprocess

import pytest

CUDA_BUILD = "mpcore 9.9.9, git 1234567, targets: host cuda (CUDA 13.0, code for 75 80 90a)"
HOST_BUILD = "mpcore 9.9.9, git 1234567, targets: host"
UNSUPPORTED, ARCH_MISMATCH, OUT_OF_MEMORY, CUDA_ERROR = "20", "21", "40", "41"


class Found:
    """Exit code and findings."""

    def __init__(self, code: int, said: dict):
        self.code, self.said, self.findings = code, said, said["findings"]

    def of(self, check: str) -> str:
        """The findings of a check, each a line "verdict: what. remedy"."""
        return "\n".join(f"{one['verdict']}: {one['what']}. {one.get('remedy', '')}" for one in self.findings
                         if one["check"] == check)


@pytest.fixture(scope="module")
def execute(build, root):
    """execute(argument..., env={}): runs mpinfo doctor with only these variables of the library
    and of CUDA; the visibility of real devices is kept."""
    def execute_it(*arguments, env=()):
        is_real = not any(name.startswith("STUB_CUDA") for name in dict(env))
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("MP_", "CUDA_", "STUB_"))
                 or (name == "CUDA_VISIBLE_DEVICES" and is_real)}
        return subprocess.run([build / "mpinfo", "doctor", *arguments], cwd=root, env=clean | dict(env), text=True,
                              capture_output=True, check=False)
    return execute_it


@pytest.fixture(scope="module")
def doctor(execute):
    """doctor(VARIABLE=value...): its findings."""
    def examine(**env) -> Found:
        done = execute("--json", env=env)
        assert done.returncode in (0, 1), done.stderr
        return Found(done.returncode, json.loads(done.stdout))
    return examine


@pytest.fixture(scope="module")
def library(root, run, cc, doctor, tmp_path_factory):
    """library(VARIABLE=value...): findings with another library (tests/stub/mpcore.c)."""
    stub = tmp_path_factory.mktemp("library") / "libmpcore_stub.so"
    run(*cc, "-std=gnu99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Iinclude", "-fPIC", "-shared",
        root / "tests/stub/mpcore.c", "-o", stub, "-ldl")
    return lambda **env: doctor(LD_PRELOAD=str(stub), **env)


@pytest.fixture(scope="module")
def driver(root, run, cc, library, library_path, tmp_path_factory):
    """driver(VARIABLE=value...): findings with a driver stub in addition (tests/stub/cuda.c)."""
    folder = tmp_path_factory.mktemp("driver")
    run(*cc, "-std=c99", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", root / "tests/stub/cuda.c", "-o",
        folder / "libcuda.so.1")
    # First in the path, since a real driver may be installed.
    return lambda place=folder, **env: library(LD_LIBRARY_PATH=f"{place}:{library_path('')}", **env)


def test_a_healthy_machine(doctor, target):
    found = doctor()
    if "built without the CUDA target" in found.of("driver"):
        pytest.skip("a machine where all is well (this one has a GPU, and the library no code for it)")
    assert [one for one in found.findings if one["verdict"] == "problem"] == []
    assert found.code == found.said["problems"] == 0
    assert found.said["version"] == found.said["header_version"]
    assert found.said["build"] in found.of("library")
    file = re.search("The library was loaded from (.*?)\\. ", found.of("library") + " ")[1]
    assert os.path.basename(file).startswith("libmpcore.so") and os.path.exists(file)
    for device in ["host"] if target == "host" else ["host", "cuda:0"]:
        assert re.search(rf"ok: {device}: GEMM results are exact in fp16 \(\w+\), bf16 \(\w+\), fp32 \(\w+\)",
                         found.of("products"))
        assert f"{device}: the tuning constants" in found.of("tuning")
    if target == "cuda":
        assert re.search(r"(ok|note): cuda:0 is .*, sm_\d+, \d+ SMs.*; the library has (no )?machine code for it",
                         found.of("devices"))


def test_text_and_json_agree(execute):
    env = {"MP_LOG": "two\nlines", "MP_HOST_THREADS": "1"}
    text, said = execute(env=env), json.loads(execute("--json", env=env).stdout)
    lines = [f"{one['verdict']:7}  {one['check']:15}  " +
             ". ".join([one["what"], *filter(None, [one.get("remedy")])]).replace("\n", "\\u000a")
             for one in said["findings"]]
    *found, empty, last = text.stdout.splitlines()
    assert found == lines and empty == ""
    assert last.startswith(f"{said['problems']} problem") and f", {said['notes']} note" in last
    assert text.returncode == execute("--json", env=env).returncode == 1


def test_json_option_precedes_the_subcommand(build, run):
    assert json.loads(run(build / "mpinfo", "--json", "doctor", code=None, env={"MP_LOG": "error"}))["findings"]


def test_notes_and_problems_have_remedies(library):
    found = library(STUB_CUDA_ARCHS="120 0", STUB_BUILD=CUDA_BUILD, MP_LOG="loud")
    for one in found.findings:
        assert one["verdict"] in ("ok", "note", "problem")
        assert one["what"] and "\n" not in one["what"]
        assert (one["verdict"] == "ok") == ("remedy" not in one), one


NO_CUDA = {"STUB_CUDA_STATUS": CUDA_ERROR, "STUB_BUILD": CUDA_BUILD}
HOST_ONLY = {"STUB_CUDA_STATUS": UNSUPPORTED, "STUB_BUILD": HOST_BUILD}
NO_CODE = {"STUB_CUDA_ARCHS": "0", "STUB_BUILD": CUDA_BUILD, "STUB_DRIVER_GPUS": "1"}
# Stubs, environment, check, a line of its findings.
FINDINGS = [
    ("library", {"STUB_VERSION": "20304"}, "library",
     r"problem: mpinfo was compiled with the headers of \d+\.\d+\.\d+, but the loaded library is 2\.3\.4\. .*LD_LIBRARY_PATH"),
    ("library", {"STUB_VERSION": "20304"}, "library", r"ok: The library was loaded from .*libmpcore_stub\.so"),
    ("library", {"STUB_HOST_STATUS": ARCH_MISMATCH}, "host",
     "problem: The host target cannot be used: refused by the test.*make HOST_MARCH=x86-64"),
    ("library", {"STUB_HOST_STATUS": OUT_OF_MEMORY}, "host",
     "problem: The host target cannot be used: refused by the test.*Free memory"),
    ("library", {"STUB_PRODUCT": "wrong"}, "products",
     r"problem: host: GEMM in fp16 fails: d\[\d+\]\[\d+\] is 0, not -?\d+\. Do not use this device"),
    ("library", {"STUB_PRODUCT": "fails"}, "products",
     r"problem: host: GEMM in fp16 fails: MP_ERROR_CUDA: mp_gemm: it fell over\. Do not use this device"),
    ("library", {"STUB_PRODUCT": "warns"}, "warnings",
     r"note: The library warns: mp_gemm: slow\. docs/log\.md lists a remedy"),
    ("library", {"STUB_PRODUCT": "warns"}, "products", "ok: host: GEMM results are exact"),
    ("driver", {"STUB_DRIVER_CUDA": "12040", "STUB_DRIVER_GPUS": "1", **NO_CUDA}, "driver",
     r"problem: .*supports CUDA 12\.4, but the library was built with CUDA 13\.0\. Install a newer driver"),
    ("driver", {"STUB_DRIVER_CUDA": "0", **NO_CUDA}, "driver",
     r"problem: .*does not work \(.*libcuda\.so\.1\): cuDriverGetVersion failed: CUDA_ERROR_STUB_LIBRARY \(34\)\. .*stub libraries"),
    ("driver", {"STUB_DRIVER_INIT": "803", **NO_CUDA}, "driver", r"problem: .*cuInit failed: unknown error \(803\)\. Run nvidia-smi"),
    ("driver", {"STUB_DRIVER_GPUS": "2", **NO_CUDA}, "driver",
     "problem: .*lists 2 GPUs, but the library cannot use any: refused by the test"),
    ("driver", {"STUB_DRIVER_INIT": "100", **NO_CUDA}, "driver", "note: .*detects no GPU. The library uses the CPU; see docs/no-gpu.md"),
    ("driver", {"STUB_DRIVER_GPUS": "1", **HOST_ONLY}, "driver",
     "problem: The machine has 1 GPU, but this library was built without the CUDA target.*NVCC="),
    *(("driver", {"STUB_DRIVER_ARCH": arch, **NO_CODE}, "devices",
       f"problem: cuda:0 cannot be used: no code for an old device. {remedy}") for arch, remedy in (
           ("100", 'Build the library for this device: make ARCHS="75 80 90a 100"'),
           ("61", "The library requires compute capability 7.5 or newer"),
           ("90", "The library has code for this device, but the driver rejects it"))),
    *(("driver", {"CUDA_VISIBLE_DEVICES": value, **stub, **NO_CUDA}, "visible devices", f"{verdict}: CUDA_VISIBLE_DEVICES = {said}")
      for value, stub, verdict, said in (
          ("", {"STUB_DRIVER_INIT": "100"}, "note", '"" hides all GPUs. Unset it'),
          ("-1", {"STUB_DRIVER_INIT": "100"}, "note", "-1 hides all GPUs"),
          ("7", {"STUB_DRIVER_INIT": "100"}, "problem", "7 lists no GPU of this machine"),
          ("0,1,9", {"STUB_DRIVER_GPUS": "2"}, "note", "0,1,9 lists more devices than the 2 that are visible"),
          ("1,0", {"STUB_DRIVER_GPUS": "2"}, "ok", "1,0 makes 2 GPUs visible"))),
    *(("doctor", {name: "1"}, "environment",
       f"problem: {name} is set, but is not a variable of the library. Did you mean {meant}\\?") for name, meant in (
           ("MP_HOST_THREAD", "MP_HOST_THREADS"), ("MP_HSOT_THREADS", "MP_HOST_THREADS"), ("MP_GEM_TUNNING", "MP_GEMM_TUNING"),
           ("MP_LOGS", "MP_LOG"), ("MP_log", "MP_LOG"), ("MP_AUTOCAST_ALOW_ADD", "MP_AUTOCAST_ALLOW_ADD"))),
]


@pytest.mark.parametrize("stubs, env, check, line", FINDINGS)
def test_findings(request, stubs, env, check, line):
    found = request.getfixturevalue(stubs)(**env)
    assert re.search(f"(?m)^{line}", found.of(check)), found.of(check)
    assert found.code == 1 or not line.startswith("problem")


# ---------------------------------------------------------------------------- devices


def test_devices(library):
    found = library(STUB_CUDA_ARCHS="90 86 120 0 80", STUB_BUILD=CUDA_BUILD)
    assert found.code == 1
    hopper, ampere, blackwell, old, last = found.of("devices").splitlines()
    assert re.match(r"ok: cuda:0 is a GPU of the test, sm_90, .*; the library has machine code for it", hopper)
    assert re.match("ok: cuda:1 .*sm_86.*machine code", ampere), "that of sm_80"
    assert re.match('note: cuda:2 .*sm_120.*WMMA.*no machine code.*first calls are slow.*make ARCHS="75 80 90a 120"',
                    blackwell)
    assert "cuda:2: the tuning constants of sm_120 " in found.of("tuning")
    assert re.match("problem: cuda:3 cannot be used: no code for an old device.*make ARCHS=", old)
    assert re.match("ok: cuda:4 ", last), "a usable device after an unusable one"
    assert "cuda:4: GEMM results are exact" in found.of("products")
    assert "cuda:3" not in found.of("products")


def test_an_unknown_build_info_is_ignored(library):
    found = library(STUB_CUDA_ARCHS="86", STUB_BUILD="mpcore, the one with cuda")
    assert re.match(r"ok: cuda:0 is .*, \d+ SMs\. $", found.of("devices")), "nothing is guessed of code"


@pytest.mark.skipif("SOFTGPU_ARCH" not in os.environ, reason="errors of a device (the software device injects them)")
@pytest.mark.parametrize("fault, why", [("cudaMalloc:1", "cudaMalloc"), ("launch:2", "MP_ERROR_CUDA")])
def test_a_failing_device_is_reported(doctor, fault, why):
    found = doctor(SOFTGPU_FAIL=fault)
    assert found.code == 1
    assert re.search(f"problem: cuda:0: GEMM in fp16 fails: .*{why}", found.of("products"))
    assert "ok: host: GEMM results are exact" in found.of("products"), "the others are looked at all the same"


# ---------------------------------------------------------------------------- the driver


def test_a_driver_and_its_devices(driver):
    found = driver(STUB_CUDA_ARCHS="90", STUB_BUILD=CUDA_BUILD, STUB_DRIVER_GPUS="1")
    assert found.code == 0, found.findings
    assert re.match(r"ok: The NVIDIA driver .*supports CUDA 13\.0 and older \(.*libcuda\.so\.1\)", found.of("driver"))
    assert "sm_90" in found.of("devices") and "141.0 GiB" in found.of("devices")


def test_a_build_without_cuda_accepts_any_driver(driver):
    assert driver(STUB_DRIVER_CUDA="9000", **HOST_ONLY).code == 0
    assert driver(STUB_DRIVER_INIT="100", **NO_CUDA).code == 0


def test_an_invalid_libcuda_is_reported(driver, run, cc, tmp_path):
    (tmp_path / "empty.c").write_text("int nothing;\n")
    run(*cc, "-fPIC", "-shared", tmp_path / "empty.c", "-o", tmp_path / "libcuda.so.1")
    found = driver(tmp_path, STUB_CUDA_STATUS=CUDA_ERROR)
    assert found.code == 1
    assert f"does not work ({tmp_path}/libcuda.so.1): cuGetErrorName is missing" in found.of("driver")


def test_cuda_settings(library):
    slow = {"CUDA_MODULE_LOADING": "EAGER", "CUDA_FORCE_PTX_JIT": "1", "CUDA_LAUNCH_BLOCKING": "0"}
    said = library(STUB_CUDA_STATUS=CUDA_ERROR, **slow).of("CUDA settings")
    assert re.findall(r"note: (\w+ = \w+)", said) == ["CUDA_MODULE_LOADING = EAGER", "CUDA_FORCE_PTX_JIT = 1"]
    assert not library(STUB_CUDA_STATUS=UNSUPPORTED, **slow).of("CUDA settings"), "nothing reads them"


# ---------------------------------------------------------------------------- the tuning table


def test_tuning_tables(doctor, tmp_path):
    table = tmp_path / "table"
    missing = doctor(MP_GEMM_TUNING=str(table))
    assert missing.code == 1
    assert re.search(f"problem: .*MP_GEMM_TUNING = {table}: cannot be read", missing.of("tuning"))

    table.write_text("# mine\nhost launch_us=4\nhost lunch_us=4\n")
    wrong = doctor(MP_GEMM_TUNING=str(table))
    assert wrong.code == 1
    assert re.search(f'problem: .*MP_GEMM_TUNING = {table}: line 3: .*"lunch_us".*make tune', wrong.of("tuning"))

    table.write_text("# mine\nhost launch_us=4\n")
    right = doctor(MP_GEMM_TUNING=str(table))
    assert f"ok: mp_gemm: using MP_GEMM_TUNING = {table}" in right.of("tuning")
    assert "ok: host: the tuning constants of host were measured (from the table)" in right.of("tuning")
    assert "problem" not in right.of("tuning")

    table.write_text("host launch_us=4 estimated=1\n")
    assert "note: host: the tuning constants" in doctor(MP_GEMM_TUNING=str(table)).of("tuning")

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert f"MP_GEMM_TUNING = {pipe}: must be a regular file" in doctor(MP_GEMM_TUNING=str(pipe)).of("tuning")

    table.write_text("sm_75 launch_us=4\n")
    assert "note: host: MP_GEMM_TUNING has no line for host" in doctor(MP_GEMM_TUNING=str(table)).of("tuning")

    table.write_text("fastest 0123456789abcdef gemv # NN\n")
    measured = doctor(MP_GEMM_TUNING=str(table)).of("tuning")
    assert f"ok: mp_gemm: using MP_GEMM_TUNING = {table}" in measured
    assert "ok: host: the tuning constants of host were measured. " in measured and "no line" not in measured


# ---------------------------------------------------------------------------- the environment


@pytest.mark.parametrize("name, value, why", [
    ("MP_LOG", "loud", "must be error, warn, info or debug; using the default"),
    ("MP_HOST_THREADS", "two", "must be an integer from 1 to 256; using the default"),
    ("MP_HOST_THREADS", "2x", "must be an integer from 1 to 256; using the default"),
    ("MP_HOST_THREADS", "1000", "must be an integer from 1 to 256; using the default"),
    ("MP_AUTOCAST", "fp8", "must be off, fp16"),
    ("MP_AUTOCAST_LEVEL", "high", "must be normal, infer_as_deny, tensor_cores_only or force_all"),
    ("MP_AUTOCAST_IGNORE_PERFORMANCE", "maybe", "must be 0 or 1"),
    ("MP_AUTOCAST_LOG", "/dev/null/folder", "must be a writable folder"),
])
def test_values(doctor, name, value, why):
    found = doctor(**{name: value})
    assert found.code == 1
    assert re.search(rf"(?m)^problem: .*\b{name} = {value}: {why}.*Correct or unset it\.$", found.of("environment"))
    assert found.of("environment").count("problem") == 1


def test_all_autocast_variables_are_checked(doctor):
    """The library itself stops at the first invalid value."""
    wrong = {"MP_AUTOCAST": "fp8", "MP_AUTOCAST_LEVEL": "high", "MP_AUTOCAST_ALLOW_ADD": "Exp"}
    said = doctor(MP_AUTOCAST_DENY_REMOVE="Softmax", **wrong).of("environment")
    assert {name for name in re.findall(r"problem: .*: (\w+) = ", said)} == set(wrong)
    assert "ok: MP_AUTOCAST_DENY_REMOVE = Softmax" in said


def test_right_values(doctor, root):
    right = {"MP_LOG": "debug", "MP_HOST_THREADS": "1", "MP_AUTOCAST": "FP16", "MP_AUTOCAST_LEVEL": "force_all",
             "MP_AUTOCAST_LOG": "not/made/yet"}
    said = doctor(**right).of("environment")
    assert all(f"ok: {name} = {value}" in said for name, value in right.items()) and "problem" not in said
    assert not (root / "not").exists(), "it makes no folder"


@pytest.mark.parametrize("name", ["MP_TEST_DEVICE", "MP_NODES", "MP_BIND", "MP_HOSTFILE", "MPI_LOG", "TMP_LOG"])
def test_variables_of_other_software_are_ignored(doctor, name):
    assert name not in doctor(**{name: "1"}).of("environment")


# ---------------------------------------------------------------------------- the rest


def test_optional_libraries(build, doctor, library_path):
    stubs = build / "tests/stub"
    if not (stubs / "libnccl.so.2").exists():
        pytest.skip("libraries that are found (their stubs were not built)")
    said = doctor(LD_LIBRARY_PATH=f"{stubs}:{library_path('')}").of("optional")
    assert f"ok: NCCL is available ({stubs}/libnccl.so.2)" in said
    assert f"ok: NVML is available ({stubs}/libnvidia-ml.so.1)" in said


def test_optional_libraries_that_cannot_be_loaded(tmp_path, library, library_path):
    for name in ("libnccl.so.2", "libnvidia-ml.so.1"):
        (tmp_path / name).mkdir()  # found, but not a library
    path = f"{tmp_path}:{library_path('')}"
    alone = library(LD_LIBRARY_PATH=path, STUB_CUDA_STATUS=UNSUPPORTED).of("optional")
    assert re.search("ok: NCCL was not found; .*libnccl", alone) and re.search("ok: NVML was not found", alone)
    several = library(LD_LIBRARY_PATH=path, STUB_CUDA_ARCHS="90 90").of("optional")
    assert re.search("note: NCCL was not found; mp_comm_init_nccl requires.*libnccl2", several)
    assert re.search("note: NVML was not found; mpbench reads", several)


def test_a_library_without_warnings(library):
    assert "mp_gemm: slow" not in library().of("warnings")
    assert library(STUB_VERSION="20304").said["version"] == "2.3.4"


@pytest.mark.parametrize("arguments, message", [
    ("--device host", "doctor does not accept --device"),
    ("--dtype fp16", "doctor does not accept --dtype"),
    ("--all", "doctor does not accept --all"),
    ("3", "not expected: 3"),
    ("--jsno", "not expected: --jsno"),
    ("gemm 1 2 3", "not expected"),
])
def test_wrong_arguments(execute, arguments, message):
    done = execute(*arguments.split())
    assert done.returncode == 2 and message in done.stderr and done.stdout == ""


def test_help(execute, build, run):
    own = execute("--help")
    assert own.returncode == 0
    assert re.search("mpinfo doctor.*--json.*Exit code: 0 no problems", own.stdout, re.DOTALL)
    assert re.search("mpinfo doctor +problems of this installation", run(build / "mpinfo", "--help"))
