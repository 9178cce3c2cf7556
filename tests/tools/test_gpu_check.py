"""Tests of tools/gpu/gpu_check without a GPU: stubs of nvidia-smi, compute-sanitizer, ncu and
the programs of the build pass, fail, hang and crash."""
import copy
import fnmatch
import json
import os
import pathlib
import runpy
import shutil
import signal
import subprocess
import sys
import time

import pytest
from report import results
from validation import experiments, plan, runner, sanitized
from validation.runner import Step

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tools/gpu"
TALLY = "echo '3 passed, 0 failed, 1 skipped'"
OK, FAILED, WRONG_ARGUMENTS, INCOMPLETE, NO_GPU = range(5)


def write_program(path: pathlib.Path, script: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


class Machine:
    """A build and a PATH of passing stubs; tests replace some of them."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.build, self.path = self.folder / "build", self.folder / "bin"
        for program in ("tests/mptests", "tests/test_capi", "tests/conformance"):
            write_program(self.build / program, TALLY)
        for program in ("examples/cuda_graph", "grid_barrier", "mpbench", "mptune"):
            write_program(self.build / program, "exit 0")
        (self.build / "libmpcore.so").write_text("a library")
        write_program(self.path / "nvidia-smi", "echo 'A device, 570.1'")
        write_program(self.path / "compute-sanitizer", TALLY)
        for program in ("sh", "sleep", "mv", "cat", "touch"):  # no other program of this machine
            (self.path / program).symlink_to(shutil.which(program))

    def start(self, *arguments):
        return subprocess.Popen([sys.executable, HERE / "gpu_check", self.build, *arguments], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=os.environ | {"PATH": str(self.path)})

    def run(self, *arguments, code=OK) -> str:
        process = self.start(*arguments)
        said = process.communicate()[0]
        assert process.returncode == code, said
        return said

    def summary(self, name="gpu-check/summary.json") -> dict:
        return json.loads((self.build / name).read_text())

    def status(self, step: str) -> str:
        return next(entry["status"] for entry in self.summary()["steps"] if entry["step"] == step)

    def detail(self, step: str) -> str:
        return next(entry["detail"] for entry in self.summary()["steps"] if entry["step"] == step)


@pytest.fixture
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


def test_arguments(machine):
    said = machine.run("--list")
    # --list shows all stages and their durations.
    assert all(f"{stage}: " in said for stage in plan.STAGES)
    assert "about" in said
    assert not (machine.build / "gpu-check").exists(), "and runs nothing"
    said = machine.run("--stage", "tests", "--list")
    assert "tests: " in said and "sanitize: " not in said, "--list of one stage"
    assert "Exit code" in machine.run("--help")
    for wrong in (["--stage", "nothing"], ["--minutes", "0"], ["--minutes", "nan"], ["--step", "no such"], ["--jobs", "0"], ["--none"]):
        said = machine.run(*wrong, code=WRONG_ARGUMENTS)
        assert "error:" in said, f"{wrong} is rejected"
    (machine.build / "libmpcore.so").unlink()
    said = machine.run(code=WRONG_ARGUMENTS)
    assert "make gpu-check" in said, "a build without a library is rejected"


def test_no_gpu(machine):
    write_program(machine.path / "nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")
    said = machine.run(code=NO_GPU)
    # A missing driver is reported in one line.
    assert said.count("\n") == 1
    assert "no usable GPU: nvidia-smi failed: NVIDIA-SMI has failed" in said
    (machine.path / "nvidia-smi").unlink()
    said = machine.run(code=NO_GPU)
    assert said.count("\n") == 1 and "nvidia-smi" in said, "a missing nvidia-smi is reported in one line too"


def test_outcomes(machine):
    machine.run("--stage", "tests")
    run = machine.summary()
    assert run["result"] == "passed", "tests that pass"
    assert run["result_of_all"] == "incomplete" and machine.status("memcheck") == "not run", "are not all there is"
    # Tests run on the cuda target and are logged with their command.
    assert "test_capi" in (machine.build / "gpu-check/tests/C-ABI.log").read_text().splitlines()[0]
    entry = next(entry for entry in run["steps"] if entry["step"] == "gemm")
    # The summary has command, time, date and log.
    assert entry["command"].endswith("'[gemm]~[.]'")
    assert entry["seconds"] >= 0
    assert entry["begun"].startswith("20")
    assert pathlib.Path(entry["log"]).exists()
    assert machine.detail("gemm") == "3 passed, 0 failed, 1 skipped", "the skipped ones are counted"

    write_program(machine.build / "tests/mptests", f'test "$MP_TEST_DEVICE" = cuda && {TALLY}')
    machine.run("--stage", "tests")  # MP_TEST_DEVICE is cuda


CAPI, MPTUNE = ("tests", "build/tests/test_capi", ["C ABI"]), ("tune", "build/mptune", ["mptune"])
SANITIZER = ("sanitize", "bin/compute-sanitizer")
# Stage, program, steps that do not pass, what the program does (None: it is missing), and status
# and detail of the steps.
OUTCOMES = {
    "a failed test": (*CAPI, "echo '2 passed, 1 failed'; exit 1", "failed", "2 passed, 1 failed"),
    "one with a reason": (*CAPI, "echo 'FAILED: im2col: 3 elements'; echo '0 passed, 1 failed'; exit 1", "failed",
                          "0 passed, 1 failed: im2col: 3 elements"),
    "an exit code without one": (*CAPI, f"{TALLY}; exit 3", "failed", "exit code 3 despite 3 passed, *"),
    "a program without output": (*CAPI, "exit 0", "failed", "exit code 0, but no line *"),
    "a filter that no test has": (*CAPI, "echo '0 passed, 0 failed'", "failed", "no test ran"),
    "a crash": (*CAPI, f"{TALLY}; kill -SEGV $$", "crashed", "signal 11, SIGSEGV"),
    "a crash below a shell": (*CAPI, f"{TALLY}; sh -c 'kill -ABRT $$'; exit $?", "crashed", "signal 6, SIGABRT"),
    "a program that was not built": (*CAPI, None, "missing", "*/test_capi does not exist"),
    "an error that the sanitizer finds": (*SANITIZER, ["racecheck"], f'{TALLY}; test "$2" != racecheck', "failed",
                                          "exit code 1 despite 3 passed, *"),
    "a missing sanitizer": (*SANITIZER, ["memcheck", "racecheck", "initcheck", "synccheck"], None, "missing",
                            "compute-sanitizer is not in PATH"),
    "a gap that a program reports": (*MPTUNE, "echo 'gap: nothing to tune'; exit 77", "missing", "nothing to tune"),
    "a gap without a name": (*MPTUNE, "exit 77", "failed", "exit code 77: *"),
}


@pytest.mark.parametrize("stage, program, steps, script, status, detail", OUTCOMES.values(), ids=OUTCOMES)
def test_outcome_of_a_step(machine, stage, program, steps, script, status, detail):
    (machine.folder / program).unlink()
    if script:
        write_program(machine.folder / program, script)
    machine.run("--stage", stage, code=INCOMPLETE if status == "missing" else FAILED)
    entries = [entry for entry in machine.summary()["steps"] if entry["stage"] == stage and entry["status"] != "passed"]
    assert [entry["step"] for entry in entries] == steps, "the others passed"
    for entry in entries:
        assert entry["status"] == status and fnmatch.fnmatchcase(entry["detail"], detail)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return b") Z " in pathlib.Path(f"/proc/{pid}/stat").read_bytes()


def test_limits(machine, monkeypatch):
    """Tests the runner directly: the limits of the plan are minutes."""
    child = machine.folder / "child"
    write_program(machine.folder / "hang", f"sleep 60 & echo $! > {child}; trap '' TERM; wait; wait; sleep 60")
    hanging = Step("tests", "hang", (str(machine.folder / "hang"),), 0, 1)
    monkeypatch.setattr(runner, "GRACE_S", 0.2)
    result = runner.run(hanging, machine.folder, 60, os.environ, runner.Request())
    assert result.status == "timed out" and result.seconds < 10, "a step that hangs is ended at its limit"
    assert is_gone(int(child.read_text())), "with all of its processes"
    result = runner.run(hanging, machine.folder, 0.5, os.environ, runner.Request())
    assert result.status == "cut off", "the end of the run's time is not a failure"
    result = runner.run(Step("tests", "long", ("true",), 100, 200), machine.folder, 99, os.environ,
                        runner.Request())
    assert result.status == "not run" and "99 s remain" in result.detail, "a step that does not fit is not begun"


def test_budget(machine):
    said = machine.run("--stage", "tests", "--minutes", "0.2", code=INCOMPLETE)
    # Steps that exceed the time make the run incomplete.
    assert machine.status("gemm") == "not run"
    assert "not run" in said
    assert machine.status("CUDA graph") == "passed", "steps that fit the time run"
    write_program(machine.build / "examples/cuda_graph", "exit 1")
    machine.run("--stage", "tests", "--minutes", "0.2", code=FAILED)  # a failure takes precedence


MPS = "nvidia-cuda-mps-control"


def test_shared_gpu(machine):
    log = machine.folder / "mps.log"
    write_program(machine.path / MPS, f'echo "$@ $(cat) $CUDA_MPS_PIPE_DIRECTORY" >> {log}')
    for program in ("tests/test_capi", "mpbench"):
        write_program(machine.build / program, f'echo "program $CUDA_MPS_PIPE_DIRECTORY" >> {log}; {TALLY}')
    machine.run("--stage", "tests", "--step", "C ABI")
    assert log.read_text() == "program \n", "a step at a time needs no service"
    log.unlink()
    machine.run("--jobs", "2", "--stage", "tests", "--stage", "bench", "--step", "C")
    machine.run("--jobs", "2", "--stage", "tests", "--stage", "bench", "--step", "calls", "--minutes", "9")
    begun, program, ended, *timed = log.read_text().splitlines()
    folder = program.removeprefix("program ")
    assert folder and begun.split() == ["-d", folder] and ended.split() == ["quit", folder]
    assert not pathlib.Path(folder).exists(), "nothing of it stays"
    assert "program " in timed, "timed programs run alone on the GPU"


def test_no_shared_gpu(machine):
    write_program(machine.path / MPS, "exit 1")
    write_program(machine.build / "tests/test_capi", f'[ -z "$CUDA_MPS_PIPE_DIRECTORY" ] && {TALLY}')
    machine.run("--jobs", "2", "--stage", "tests", "--step", "C ABI")


def test_jobs(machine):
    """Two steps that wait for each other, and benches that fail unless they run alone."""
    meet = "touch {here}.$1; while ! test -e {here}.$2; do sleep 0.02; done"
    for program, names in (("tests/test_capi", ("a", "b")), ("examples/cuda_graph", ("b", "a"))):
        write_program(machine.build / program, f"set {' '.join(names)}; {meet.format(here=machine.folder / 'met')}; {TALLY}")
    alone = machine.folder / "alone"
    write_program(machine.build / "mpbench", f"test ! -e {alone} || exit 1; touch {alone}; sleep 0.05; mv {alone} {alone}.past")
    write_program(machine.build / "tests/conformance", f"touch {alone}; sleep 0.2; mv {alone} {alone}.past 2>&1; {TALLY}")
    machine.run("--jobs", "4", "--stage", "tests", "--stage", "layouts", "--stage", "bench")


def test_interruption(machine):
    child = machine.folder / "child"
    write_program(machine.build / "examples/cuda_graph", f"echo $$ > {child}.new; mv {child}.new {child}; sleep 60")
    process = machine.start("--stage", "tests")
    while not child.exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    said = process.communicate()[0]
    assert is_gone(int(child.read_text())), "ended from outside it ends the step"
    # A summary is still written.
    assert process.returncode == INCOMPLETE
    assert "ended by SIGTERM" in said
    assert machine.status("C ABI") == "passed"
    assert machine.status("CUDA graph") == "cut off"
    assert machine.status("gemm") == "not run"

    child.unlink()
    process = machine.start("--stage", "tests")
    while not child.exists():
        time.sleep(0.02)
    process.kill()
    process.communicate()
    os.kill(int(child.read_text()), signal.SIGKILL)
    assert machine.status("CUDA graph") == "cut off", "a killed run reports its current step"


def test_summary(machine):
    machine.run("--stage", "tests")
    said = machine.run("--stage", "layouts")
    assert machine.status("gemm") == "passed", "the summary keeps results of other stages"
    text = (machine.build / "gpu-check/summary.txt").read_text()
    assert (machine.build / "gpu-check/nvidia-smi.txt").read_text() == "A device, 570.1\n", "nvidia-smi is kept"
    assert "A device, 570.1" in text and "this run: passed" in text, "as text too, with the device"
    said = machine.run("--step", "C ABI", "--json", str(machine.build / "own.json"))
    # Options --step and --json.
    assert machine.summary("own.json")["result"] == "passed"
    assert "gemm" not in said.partition("C ABI ...")[0]
    (machine.build / "libmpcore.so").write_text("another library")
    machine.run("--stage", "layouts")
    assert machine.status("gemm") == "not run", "of another library nothing is kept"
    (machine.build / "gpu-check/summary.json").write_text("{")
    machine.run("--stage", "layouts")  # a damaged summary is overwritten


def test_pack(machine):
    packed = machine.folder / "packed"
    (machine.build / "an_object.o").write_text("")
    said = machine.run("--pack", str(packed), code=FAILED)
    assert "mpbench_first_result" in said, "--pack lists missing programs"
    write_program(machine.build / "mpbench_first_result", "")
    for name in ("libnccl.so.2", "libnvidia-ml.so.1", "libcudnn.so.9"):
        write_program(machine.build / "tests/stub" / name, "")
    machine.run("--pack", str(packed))
    machine.run("--pack", str(packed))  # replaces an older one
    assert not (packed / "an_object.o").exists() and not (packed / "gpu-check").exists(), "takes no more than is needed"
    machine.build = packed
    for stage in ("layouts", "tests", "sanitize", "bench", "tune"):
        machine.run("--stage", stage)  # the package is a build for that stage


class ProfilingMachine(Machine):
    """A machine with ncu, and synthetic results: the second row is the worst, then the fifth."""

    def __init__(self, folder: pathlib.Path):
        super().__init__(folder)
        run = json.loads((ROOT / "bench/results/sample_host_1.json").read_text(encoding="utf-8"))
        run["target"] = "cuda"
        self.rows = [row for row in run["rows"] if row["bench"] == "gemm"]
        for row in run["rows"]:
            row.pop("ratio_to_peer", None)
        self.rows[1]["ratio_to_peer"], self.rows[4]["ratio_to_peer"] = 0.5, 0.9
        self.results = self.build / "gpu-check/bench"
        self.results.mkdir(parents=True)
        (self.results / "gemm.json").write_text(json.dumps(run))
        earlier = copy.deepcopy(run) | {"date": "2000-01-01T00:00:00Z"}
        for row in earlier["rows"]:
            row["ratio_to_peer"] = 0.1
        (self.results / "quick.json").write_text(json.dumps(earlier))
        (self.results / "damaged.json").write_text("{")
        (self.folder / "details").write_text("void mp::cuda::gemm_wmma<mp::cuda::half, 1>(mp::cuda::GemmArgs)\n")
        self.ncu = f'''
echo "$@" >> {self.folder}/calls
if [ "$1" = --import ]; then cat {self.folder}/details; exit; fi
while [ "$1" != --export ]; do shift; done
touch "$2"'''
        write_program(self.path / "ncu", self.ncu)


def test_profile(tmp_path):
    machine = ProfilingMachine(tmp_path)
    machine.run("--stage", "profile", code=INCOMPLETE)
    calls = (machine.folder / "calls").read_text().splitlines()
    first = machine.rows[1]
    # The worst shape runs once, under ncu.
    assert f"--once {first['set']} {first['shape']}" in calls[0]
    assert "--set full" in calls[0]
    assert f"mpbench gemm --device cuda --set {first['set']}" in calls[0]
    assert machine.rows[4]["shape"] in calls[2], "then the next"
    text = (machine.build / "gpu-check/profile/1.txt").read_text()
    assert all(part in text for part in (first["shape"], "ratio_to_peer 0.5", "gemm_wmma<"))
    # Fewer rows than requested are a gap.
    assert machine.status("worst 2") == "passed"
    assert "has only 2 GEMMs and convolutions" in machine.detail("worst 3")

    write_program(machine.path / "ncu", "echo '==ERROR== ERR_NVGPUCTRPERM - no permission'; exit 1")
    machine.run("--stage", "profile", code=INCOMPLETE)
    # Missing permission is reported as a gap.
    assert machine.status("worst 1") == "missing"
    assert "no permission to read the counters" in machine.detail("worst 1")
    write_program(machine.path / "ncu", "exit 0")
    machine.run("--stage", "profile", "--step", "worst 1", code=FAILED)  # no report: fails
    write_program(machine.path / "ncu", machine.ncu)
    (machine.folder / "details").write_text("No kernels were profiled.\n")
    machine.run("--stage", "profile", "--step", "worst 1", code=FAILED)  # no kernels is a failure
    (machine.path / "ncu").unlink()
    machine.run("--stage", "profile", code=INCOMPLETE)
    assert "ncu is not in PATH" in machine.detail("worst 1"), "no ncu is a named gap"


def test_experiments(machine):
    """The verdict of an experiment compares the mean of its rows with the prediction."""
    row = {"bench": "conv", "ratio_to_peer_best": 0.8}
    for ratios, status, detail in (((0.8, 1.25), "passed", "ratio_to_peer_best 1, as predicted (0.95 to 1.0: tile of 64x128"),
                                   ((0.5,), "passed", "0.5, below predicted"), ((), "failed", "no row of conv has ratio_to_peer_best")):
        run = json.dumps({"rows": [row | {"ratio_to_peer_best": ratio} for ratio in ratios]})
        write_program(machine.build / "mpbench", f"while [ $# -gt 1 ]; do shift; done; echo '{run}' > $1")
        machine.run("--stage", "experiments", "--step", "1 fprop 7x7", code=OK if status == "passed" else FAILED)
        assert machine.status("1 fprop 7x7") == status and detail in machine.detail("1 fprop 7x7")


def test_experiments_select_measured_rows():
    """Each filter selects rows that were measured before, with the compared field."""
    rows = [row for path in (ROOT / "bench/results").glob("h200_*.json") for row in json.loads(path.read_text())["rows"]]
    labels = [f"{results.name_of(row)} {row.get('comment', '')}".replace(", layer ", " ") for row in rows]
    for one in experiments.read():
        found = [row for row, label in zip(rows, labels) if row["bench"] == one.bench and row.get("set", "") == one.set
                 and one.filter in label]
        assert found and all(one.field in row for row in found), one.name
        assert float(one.low) <= float(one.high)
        # A comma in `basis` would end in this column.
        assert one.option in ("--set", "--tune"), one.name
        assert ("--tune" in one.command("mpbench", pathlib.Path("x.json"))) == (one.name == "measured kernels")
    assert len(experiments.read()) * experiments.SECONDS <= 12 * 60


def test_lists(catch_tests):
    kernels = {kernel for pattern in ("*.cu", "*.h") for path in (ROOT / "kernels").rglob(pattern)
               if "simt" not in path.relative_to(ROOT / "kernels").parts
               for kernel in sanitized.kernels_of(path.read_text(encoding="utf-8"))}
    assert kernels <= sanitized.KERNELS, "every kernel has a test that is run under compute-sanitizer"
    assert kernels >= sanitized.KERNELS, "no other kernel is listed"
    assert len(kernels) > 30, "kernels are found at all"
    assert sanitized.TESTS.keys() <= catch_tests.keys(), "every test exists"


@pytest.fixture
def lines_of(build):
    """lines_of(program, argument...): output of a program of the build."""
    return lambda program, *arguments: subprocess.run(
        [build / program, *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False).stdout.splitlines()


def test_build(build, lines_of):
    """The programs of a real build match the plan."""
    cases = lines_of("tests/conformance", "--list")
    assert cases == list(plan.CONFORMANCE_CASES), "every case of conformance is a step"
    listed = lines_of("tests/mptests", sanitized.test_spec(), "--list-test-names-only")
    assert sanitized.TESTS.keys() <= set(listed), "the sanitized tests are there"
    groups = [step.command for step in plan.steps(str(build), build / "gpu-check", HERE)
              if step.stage == "tests" and step.command[0].endswith("mptests")]
    grouped = {name for _program, spec in groups for name in lines_of("tests/mptests", spec, "--list-test-names-only")}
    every = set(lines_of("tests/mptests", "--list-test-names-only"))
    assert len(every) > 400 and grouped == every, "the groups are all tests, without hidden ones"


def test_products_that_are_profiled(build, lines_of):
    if not (build / "mpbench").exists():
        pytest.skip("products under the profiler (no mpbench in this build: make tests)")
    profile_worst = runpy.run_path(str(HERE / "profile_worst"))
    row = {"bench": "gemm", "set": "deepbench", "dtype": "bf16", "out_dtype": "fp32", "beta": 0}
    for name, answer in (("deepbench NN 16x1760x1760", "deepbench NN 16x1760x1760: gemv"),
                         ("deepbench NN 16x1760x176", "mpbench: --once: no GEMM or convolution")):
        command = [word.replace("cuda", "host") for word in profile_worst["bench_command"]("mpbench", row, name)]
        said = lines_of(*command)
        assert len(said) == 1 and said[0].startswith(answer), f"mpbench --once \"{name}\""
