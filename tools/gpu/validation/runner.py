"""Runs one step: a command with a time limit, whose output goes to a log."""
import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import time
import typing

PASSED, FAILED, CRASHED, TIMED_OUT = "passed", "failed", "crashed", "timed out"
MISSING = "missing"          # a required program, file or permission is missing
NOT_RUN = "not run"          # no time left
CUT_OFF = "cut off"          # the run reached its time limit or was interrupted

FAILURES = (FAILED, CRASHED, TIMED_OUT)
GAPS = (MISSING, NOT_RUN, CUT_OFF)

GAP_EXIT_CODE = 77           # a command reports MISSING; its last line begins with "gap: "
TALLY = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)
REASON = re.compile(r"^FAILED: (.*)$", re.MULTILINE)
POLL_S = 0.2                 # interval at which signals are checked
GRACE_S = 5                  # time between SIGTERM and SIGKILL


@dataclasses.dataclass(frozen=True)
class Step:
    stage: str
    name: str
    command: tuple           # argv
    expected_s: int
    limit_s: int
    programs: tuple = ()     # required in addition to the first word of the command
    has_tally: bool = False  # its last line is "N passed, N failed[, N skipped]"
    verdict: typing.Callable = None  # detail of a step that passed

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
    """A signal ended the run; the current step has been terminated."""


class Request:
    """A request to terminate, set by a signal handler and polled.

    An exception from the handler could arrive after a process starts but before it is recorded.
    """

    def __init__(self):
        self.signal_name = None

    def take(self, signal_number, _frame):
        self.signal_name = signal.Signals(signal_number).name

    def heed(self):
        """@raises Interrupted"""
        if self.signal_name:
            raise Interrupted(self.signal_name)


def missing_part(step: Step) -> str:
    """Returns the first missing requirement of the step, or an empty string."""
    for program in (step.command[0], *step.programs):
        if shutil.which(program) is None:
            return f"{program} does not exist" if "/" in program else f"{program} is not in PATH"
    return ""


def _end_group(process):
    """Sends SIGTERM, then SIGKILL, to all processes of the step."""
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
    if code > 128 and code - 128 in iter(signal.Signals):  # signal of a child process
        return Result(CRASHED, f"signal {code - 128}, {signal.Signals(code - 128).name}")
    if code == GAP_EXIT_CODE and last_line.startswith("gap: "):
        return Result(MISSING, last_line[len("gap: "):])
    if not step.has_tally and code != 0:
        return Result(FAILED, f"exit code {code}: {last_line}")
    if not step.has_tally:
        try:
            return Result(PASSED, step.verdict() if step.verdict else "")
        except (OSError, ValueError) as error:
            return Result(FAILED, str(error))
    tallies = TALLY.findall(text)
    if not tallies:
        return Result(FAILED, f"exit code {code}, but no line \"N passed, N failed\" at the end")
    passed, failed, skipped = (int(number or 0) for number in tallies[-1])
    counts = f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")
    reasons = REASON.findall(text)
    if reasons:
        counts += f": {reasons[0]}"
    if passed + failed + skipped == 0:
        return Result(FAILED, "no test ran")
    if code == 0 and failed == 0:
        return Result(PASSED, counts)
    return Result(FAILED, counts if failed else f"exit code {code} despite {counts}")


def _wait(process, limit_s: float, request: Request) -> int:
    """Returns the exit code.  @raises subprocess.TimeoutExpired, Interrupted"""
    end = time.monotonic() + limit_s
    while True:
        request.heed()
        try:
            return process.wait(max(0, min(end - time.monotonic(), POLL_S)))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= end:
                raise


def run(step: Step, folder: pathlib.Path, seconds_left: float, environment: dict, request: Request) -> Result:
    """Runs the step within its limit and the remaining time.  @raises Interrupted"""
    why = missing_part(step)
    if why:
        return Result(MISSING, why)
    if seconds_left < step.expected_s:
        return Result(NOT_RUN, f"expected to take {step.expected_s} s, but only {max(0, int(seconds_left))} s remain")
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
            result = (Result(TIMED_OUT, f"exceeded its limit of {step.limit_s} s")
                      if limit_s == step.limit_s else
                      Result(CUT_OFF, f"the run reached its time limit after {int(limit_s)} s"))
        except BaseException:
            _end_group(process)
            raise
    result.seconds = round(time.monotonic() - start, 1)
    result.log, result.begun = str(log), begun
    return result
