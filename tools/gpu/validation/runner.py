"""One step: a command under a time limit, its output in a log, and what became of it."""
import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time

PASSED, FAILED, CRASHED, TIMED_OUT = "passed", "failed", "crashed", "timed out"
MISSING = "missing"          # a program, a file or a permission that the step cannot do without
NOT_RUN = "not run"          # no time left
CUT_OFF = "cut off"          # the time of the whole run was over, or somebody ended it

FAILURES = (FAILED, CRASHED, TIMED_OUT)
GAPS = (MISSING, NOT_RUN, CUT_OFF)

GAP_EXIT_CODE = 77           # a command's own way to say MISSING; its last line begins with "gap: "
TALLY = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)
REASON = re.compile(r"^FAILED: (.*)$", re.MULTILINE)
POLL_S = 0.2                 # how soon a request to end is heeded
GRACE_S = 5                  # from the request to end to the end


@dataclasses.dataclass(frozen=True)
class Step:
    stage: str
    name: str
    command: tuple           # argv
    expected_s: int
    limit_s: int
    programs: tuple = ()     # that it cannot do without, besides the first word of the command
    has_tally: bool = False  # its last line is "N passed, N failed[, N skipped]"

    @property
    def log_name(self) -> str:
        return re.sub(r"\W+", "-", self.name).strip("-") + ".log"


@dataclasses.dataclass
class Result:
    status: str
    detail: str = ""
    seconds: float = 0.0
    log: str = ""
    begun: str = ""          # UTC, ISO 8601


class Interrupted(Exception):
    """Somebody asked this program to end; the step at hand has been ended."""


class Request:
    """To end, by a signal.  It is looked at, not raised: an exception could come between the start of a process
    and the knowledge of it."""

    def __init__(self):
        self.signal_name = None

    def take(self, signal_number, _frame):
        self.signal_name = signal.Signals(signal_number).name

    def heed(self):
        """@raises Interrupted"""
        if self.signal_name:
            raise Interrupted(self.signal_name)


def missing_part(step: Step) -> str:
    """What the step cannot do without and this machine lacks, or nothing."""
    for program in (step.command[0], *step.programs):
        if shutil.which(program) is None:
            return f"there is no program {program}" + ("" if "/" in program else " in the PATH")
    return ""


def _end_group(process):
    """Asks all of the step's processes to end, then makes them."""
    for request in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, request)
            process.wait(GRACE_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
    process.wait()


def _outcome(step: Step, code: int, text: str) -> Result:
    last_line = text.rstrip().rpartition("\n")[2]
    if code < 0:
        return Result(CRASHED, f"signal {-code}, {signal.Signals(-code).name}")
    if code > 128 and code - 128 in iter(signal.Signals):  # of a program that the command itself started
        return Result(CRASHED, f"signal {code - 128}, {signal.Signals(code - 128).name}")
    if code == GAP_EXIT_CODE and last_line.startswith("gap: "):
        return Result(MISSING, last_line[len("gap: "):])
    if not step.has_tally:
        return Result(PASSED) if code == 0 else Result(FAILED, f"exit code {code}: {last_line}")
    tallies = TALLY.findall(text)
    if not tallies:
        return Result(FAILED, f"exit code {code}, and no line \"N passed, N failed\" at its end")
    passed, failed, skipped = (int(number or 0) for number in tallies[-1])
    counts = f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")
    reasons = REASON.findall(text)
    if reasons:
        counts += f": {reasons[0]}"
    if passed + failed + skipped == 0:
        return Result(FAILED, "no test ran")
    if code == 0 and failed == 0:
        return Result(PASSED, counts)
    return Result(FAILED, counts if failed else f"exit code {code}, though {counts}")


def _wait(process, limit_s: float, request: Request) -> int:
    """The exit code.  @raises subprocess.TimeoutExpired, Interrupted"""
    end = time.monotonic() + limit_s
    while True:
        request.heed()
        try:
            return process.wait(max(0, min(end - time.monotonic(), POLL_S)))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= end:
                raise


def run(step: Step, folder: pathlib.Path, seconds_left: float, environment: dict, request: Request) -> Result:
    """Runs the step in at most its limit and the time that is left.  @raises Interrupted"""
    why = missing_part(step)
    if why:
        return Result(MISSING, why)
    if seconds_left < step.expected_s:
        return Result(NOT_RUN, f"expected to take {step.expected_s} s, of which {max(0, int(seconds_left))} are left")
    log = folder / step.stage / step.log_name
    log.parent.mkdir(parents=True, exist_ok=True)
    limit_s = min(step.limit_s, seconds_left)
    begun, start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), time.monotonic()
    with open(log, "w", encoding="utf-8") as output:
        output.write(f"$ {shlex.join(step.command)}\n")
        output.flush()
        process = subprocess.Popen(step.command, stdout=output, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
        try:
            code = _wait(process, limit_s, request)
            result = _outcome(step, code, log.read_text(encoding="utf-8", errors="replace"))
        except subprocess.TimeoutExpired:
            _end_group(process)
            result = (Result(TIMED_OUT, f"took longer than its limit of {step.limit_s} s")
                      if limit_s == step.limit_s else
                      Result(CUT_OFF, f"the time of the run was over after {int(limit_s)} s"))
        except BaseException:
            _end_group(process)
            raise
    result.seconds = round(time.monotonic() - start, 1)
    result.log, result.begun = str(log), begun
    return result
