"""Tests of training on four MPI ranks (tests/mpi/training), in which one rank has a fault in one
step.

There is no tolerance: all sums are exact, so every rank has the same bits as a single rank that
uses all samples, and checkpoints are compared as bytes.  docs/multi-gpu.md describes the effect
on the other ranks.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

RANKS, RANK, STEP, STEPS = 4, 2, 20, 30  # the fault occurs on RANK in STEP, which has no overflow
LONG = 100
SUMMED = "mp_grads_all_reduce MP_SUCCESS, "
RANKS_DIFFER, WRONG_OUTCOME, REPORTED = 70, 71, 72  # exit codes of the program


def pids_of(session: int) -> list:
    pids = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            pids.append(int(stat.parent.name))
    return pids


def end_session(session: int, seconds=10.0) -> list:
    """Kills the remaining processes; @return processes that had not ended by themselves"""
    end = time.monotonic() + seconds
    while left := pids_of(session):
        if time.monotonic() > end:
            break
        time.sleep(0.1)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


@pytest.fixture(scope="module")
def train(root, build, target, need):
    """train(folder, argument..., ranks=4, code=0, timeout=60): runs a job and checks its exit
    code, and that no process is left."""
    if target != "host":
        pytest.skip("a training on ranks of MPI (mpcore_mpi.h is for memory of the host)")
    need("mpirun", "a training on ranks of MPI")
    program = build / "tests/mpitraining"
    if not program.exists():
        pytest.skip("a training on ranks of MPI (no mpicxx to build it)")

    def train_it(folder, *arguments, ranks=RANKS, code=0, timeout=60):
        command = [root / "tests/tools/run_mpi", ranks, program, "--folder", folder, *arguments]
        with subprocess.Popen(list(map(str, command)), cwd=root, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True) as job:
            try:
                said, _ = job.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                job.terminate()  # mpirun ends its ranks then
                raise
            finally:
                left = end_session(job.pid)
        assert job.returncode == code, f"exit code {job.returncode}: {said}"
        assert not left, f"processes {left} are left: {said}"
    return train_it


def wrong(kind: str, callback=1, rank=RANK, step=STEP) -> list:
    return ["--fault", kind, "--rank", rank, "--at", step, "--callback", callback]


def told(folder, rank=0) -> list:
    path = folder / f"told.rank{rank}"
    return path.read_text().splitlines() if path.exists() else []


def progress(folder) -> list:
    """Calls of each rank in the step of the fault, with their statuses."""
    return [(folder / f"progress.rank{rank}").read_text() for rank in range(RANKS)]


def saved(folder, step: int, rank=0) -> bytes:
    return (folder / f"step{step:04}.rank{rank}").read_bytes()


@pytest.fixture(scope="module")
def one(train, tmp_path_factory) -> pathlib.Path:
    """Folder of the single rank that uses all samples."""
    folder = tmp_path_factory.mktemp("one")
    train(folder, "--steps", LONG, ranks=1)
    return folder


def check_saved(folder, one, last: int, every=1):
    """Checks that all ranks have checkpoints up to this step, equal to those of a single rank,
    and none after it."""
    wanted = {f"step{step:04}.rank{rank}" for step in range(every, last + 1, every) for rank in range(RANKS)}
    assert {path.name for path in folder.glob("step*.rank?")} == wanted
    for name in wanted:
        assert (folder / name).read_bytes() == saved(one, int(name[4:8])), name


def check_stopped(folder, one, steps: list):
    """Checks that the last weights that each rank wrote, before or after a message, are those after
    this step."""
    for rank, step in enumerate(steps):
        weights = (folder / f"stopped.rank{rank}").read_bytes()
        assert saved(one, step).startswith(weights), f"rank {rank} has not the weights of step {step}"
        assert not saved(one, step - 1).startswith(weights)


@pytest.mark.parametrize("ranks", [2, RANKS])
def test_ranks_match_a_single_rank(train, one, tmp_path, ranks):
    train(tmp_path, "--steps", LONG, ranks=ranks)
    for step in range(1, LONG + 1):
        for rank in range(ranks):
            assert saved(tmp_path, step, rank) == saved(one, step), f"rank {rank}, step {step}"
    assert (tmp_path / "losses").read_bytes() == (one / "losses").read_bytes()
    losses = list(map(int, (one / "losses").read_text().split()))
    assert len(losses) == LONG and sum(losses[-50:]) < sum(losses[:50]), "it learns"
    assert told(tmp_path) == told(one) == ["100 steps, 13 skipped: 5 infinite, 2 NaN, 6 unseen", "200 comparisons"]


def test_a_slow_rank_changes_no_result(train, one, tmp_path):
    train(tmp_path, "--steps", STEPS, *wrong("slow"))
    check_saved(tmp_path, one, STEPS)


# -------------------------------------------------------------------- a call fails on one rank

REFUSED_SUM = "mp_grads_all_reduce: pre = 0 must be positive and finite"
REFUSED_STEP = "mp_scale_step: max_grad_norm = -1 is negative or NaN"
FAILED_SUM = r"mp_grads_all_reduce: comm->all_reduce returned \d+"
FAILED_STEP = r"mp_scale_step: comm->all_reduce returned \d+"
# Fault; message; last call of this rank, and of the others; steps by which the others are ahead.
CALLS = {
    ("refused", 1): (REFUSED_SUM, "mp_grads_all_reduce MP_ERROR_INVALID_ARGUMENT", "mp_grads_all_reduce waits", 0),
    ("refused", 3): (REFUSED_STEP, SUMMED + "mp_scale_step MP_ERROR_INVALID_ARGUMENT",
                     SUMMED + "mp_scale_step waits", 0),
    ("fails-before", 1): (FAILED_SUM, "mp_grads_all_reduce MP_ERROR_COMM", "mp_grads_all_reduce waits", 0),
    ("fails-before", 3): (FAILED_STEP, SUMMED + "mp_scale_step MP_ERROR_COMM", SUMMED + "mp_scale_step waits", 0),
    # The others have a second gradient to sum.
    ("fails-after", 1): (FAILED_SUM, "mp_grads_all_reduce MP_ERROR_COMM", "mp_grads_all_reduce waits", 0),
    ("fails-after", 2): (FAILED_SUM, "mp_grads_all_reduce MP_ERROR_COMM", SUMMED + "mp_scale_step waits", 0),
    # The others have all data and execute the step.
    ("fails-after", 3): (FAILED_STEP, SUMMED + "mp_scale_step MP_ERROR_COMM", SUMMED + "mp_scale_step MP_SUCCESS", 1),
}


@pytest.mark.parametrize("kind, callback", CALLS)
def test_one_failed_call_is_reported(train, one, tmp_path, kind, callback):
    sentence, its_call, others, ahead = CALLS[kind, callback]
    train(tmp_path, "--steps", STEPS, *wrong(kind, callback), "--on-failure", "report", code=REPORTED)
    assert progress(tmp_path) == [its_call if rank == RANK else others for rank in range(RANKS)]
    assert re.fullmatch(f"rank {RANK}, step {STEP}: {sentence}", "\n".join(told(tmp_path, RANK)))
    check_stopped(tmp_path, one, [STEP - 1 if rank == RANK else STEP - 1 + ahead for rank in range(RANKS)])
    check_saved(tmp_path, one, STEP - 1)


@pytest.mark.parametrize("kind, status", [("refused", 1), ("fails-before", 42)])
def test_the_failed_rank_aborts_the_job(train, one, tmp_path, kind, status):
    """Documented in docs/multi-gpu.md: the rank calls MPI_Abort with the status as exit code."""
    train(tmp_path, "--steps", STEPS, *wrong(kind), code=status)
    assert re.fullmatch(f"rank {RANK}, step {STEP}: {CALLS[kind, 1][0]}", "\n".join(told(tmp_path, RANK)))
    check_saved(tmp_path, one, STEP - 1)


@pytest.mark.parametrize("kind", ["fewer", "more"])
def test_different_element_counts_update_no_weights(train, one, tmp_path, kind):
    """MPI reports an error only to ranks whose buffer is too small: the others wait, or have
    wrong sums. The next collective of all ranks prevents an update with these sums."""
    train(tmp_path, "--steps", STEPS, *wrong(kind, 2), "--on-failure", "report", code=REPORTED)
    assert any(calls.endswith("mp_grads_all_reduce MP_ERROR_COMM") for calls in progress(tmp_path))
    assert not any(calls.endswith("mp_scale_step MP_SUCCESS") for calls in progress(tmp_path))
    check_stopped(tmp_path, one, [STEP - 1] * RANKS)


def test_sharded_flag_on_one_rank_is_reported(train, one, tmp_path):
    """MP_STEP_FLAG_SHARDED on one rank only: that rank calls one more collective."""
    train(tmp_path, "--steps", STEPS, *wrong("sharded", 3), "--on-failure", "report", code=REPORTED)
    assert progress(tmp_path) == [f"{SUMMED}mp_scale_step {'waits' if rank == RANK else 'MP_SUCCESS'}"
                                  for rank in range(RANKS)]
    check_stopped(tmp_path, one, [STEP - 1 if rank == RANK else STEP for rank in range(RANKS)])


# ---------------------------------------------------------------------------- a rank is gone

@pytest.mark.parametrize("kind, callback, code", [("exits", 2, 3), ("killed", 1, 137), ("killed", 3, 137)])
def test_the_job_resumes_after_a_rank_dies(train, one, tmp_path, kind, callback, code):
    """mpirun ends the others, which have saved nothing of that step; the job resumes from the
    step before."""
    train(tmp_path, "--steps", STEPS, *wrong(kind, callback), code=code)
    check_saved(tmp_path, one, STEP - 1)
    train(tmp_path, "--steps", STEPS, "--resume")
    assert told(tmp_path)[0] == f"resumed from step {STEP - 1}"
    check_saved(tmp_path, one, STEPS)


@pytest.fixture(scope="module")
def short(train, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("short")
    train(folder, "--steps", STEP, "--save-every", 10)
    return folder


def copy_of(folder, tmp_path) -> pathlib.Path:
    return shutil.copytree(folder, tmp_path / "copy")


def test_resumes_from_the_last_common_checkpoint(train, one, short, tmp_path):
    folder = copy_of(short, tmp_path)
    (folder / f"step{STEP:04}.rank1").unlink()
    train(folder, "--steps", STEPS, "--save-every", 10, "--resume")
    assert told(folder)[0] == "resumed from step 10"
    check_saved(folder, one, STEPS, every=10)


@pytest.mark.parametrize("ranks", [1, 2])
def test_resumes_with_another_number_of_ranks(train, one, short, tmp_path, ranks):
    folder = copy_of(short, tmp_path)
    train(folder, "--steps", STEPS, "--resume", ranks=ranks)
    assert all(saved(folder, STEPS, rank) == saved(one, STEPS) for rank in range(ranks))


@pytest.mark.parametrize("step, rank, callback", [
    (STEP, RANK, 3),
    # This rank has an overflow.  The step after the checkpoint has none, and shows the state after
    # recovery.
    (7, 2, 2), (7, 2, 3), (9, 3, 2)])
def test_all_ranks_restore_the_last_checkpoint(train, one, tmp_path, step, rank, callback):
    train(tmp_path, "--steps", STEPS, "--save-every", 5, *wrong("fails-after", callback, rank, step), "--on-failure",
          "restore")
    assert told(tmp_path)[0] == f"all ranks go back to step {(step - 1) // 5 * 5}"
    check_saved(tmp_path, one, STEPS, every=5)


# ---------------------------------------------------------------- injected: the checks themselves

@pytest.mark.parametrize("kind, code, sentence", [
    ("flipped-bit", RANKS_DIFFER, f"step {STEP}: rank {RANK} and rank 0 differ: checkpoint"),
    ("without-comm", RANKS_DIFFER, "step 9: rank 3 and rank 0 differ: checkpoint"),
    ("raised-flag", WRONG_OUTCOME, f"step {STEP}: another outcome than its overflow has to have")])
def test_injected_difference(train, tmp_path, kind, code, sentence):
    train(tmp_path, "--steps", STEPS, *wrong(kind), code=code)
    assert told(tmp_path) == [sentence]


def test_injected_sample(train, one, tmp_path):
    train(tmp_path, "--steps", STEPS, *wrong("other-target"))
    assert saved(tmp_path, STEP - 1) == saved(one, STEP - 1) and saved(tmp_path, STEP) != saved(one, STEP)
    with pytest.raises(AssertionError, match=r"step00[23]\d\.rank\d"):
        check_saved(tmp_path, one, STEPS)


def test_injected_checkpoint(train, short, tmp_path):
    folder = copy_of(short, tmp_path)
    path = folder / f"step{STEP:04}.rank{RANK}"
    damaged = bytearray(path.read_bytes())
    damaged[6000] ^= 1  # in the checkpoint of the optimizer, which follows the weights
    path.write_bytes(damaged)
    train(folder, "--steps", STEPS, "--resume", code=RANKS_DIFFER)
    assert told(folder) == [f"resumed from step {STEP}", f"step {STEP}: rank {RANK} and rank 0 differ: checkpoint"]


def test_injected_hang(train, tmp_path):
    """A job that hangs is ended, and leaves no process."""
    with pytest.raises(subprocess.TimeoutExpired):
        train(tmp_path, "--steps", STEPS, *wrong("sharded", 3), timeout=3)
    programs = [stat.parent / "cmdline" for stat in pathlib.Path("/proc").glob("[0-9]*/stat")]
    assert not [path for path in programs if path.exists() and str(tmp_path).encode() in path.read_bytes()]


def test_injected_process():
    """A process left by a job that has ended."""
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo $!"], text=True, stdout=subprocess.PIPE,
                          start_new_session=True) as job:
        pid = int(job.stdout.readline())
        job.wait()
        assert end_session(job.pid, seconds=0.2) == [pid]
        assert end_session(job.pid) == []
