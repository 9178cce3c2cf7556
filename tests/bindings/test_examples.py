"""Output of the C examples on the target under test; cuda_graph requires a CUDA device.
train prints one hash of the weights per target: in all languages, with and without a resume."""
import re

import pytest


@pytest.fixture(scope="module")
def examples(build):
    return build / "examples"


def weights(output: str) -> str:
    last = output.splitlines()[-1]
    assert re.fullmatch("weights [0-9a-f]{16}", last)
    return last


@pytest.fixture(scope="module")
def reference(examples, run, device) -> str:
    of_target = weights(run(examples / "train", "--device", device))
    if device != "host":
        assert of_target != weights(run(examples / "train", "--device", "host")), "the target has no effect"
    return of_target


def test_gemm(examples, run):
    assert run(examples / "gemm") == "4 6\n12 14\n20 22\n"


def test_step_lowers_the_loss(examples, run):
    run(examples / "step")


def test_cuda_graph(examples, run):
    """A replayed step equals a called step; without a device the example reports this."""
    if not (examples / "cuda_graph").exists():
        pytest.skip("the example about CUDA graphs (no nvcc)")
    run(examples / "cuda_graph")


class TestTraining:
    def test_run(self, examples, run, device, reference):
        output = run(examples / "train", "--device", device)
        assert weights(output) == reference

        def field(step: int, what: str) -> float:
            return float(re.search(rf"^step {step} .* {what} *([0-9.]+)", output, re.MULTILINE)[1])
        assert field(120, "loss") < field(10, "loss"), "it learns"
        assert field(10, "scale") < field(20, "scale"), "it moves its scale"
        assert field(30, "skipped") < field(40, "skipped"), "it skips the broken sample"

    def test_resume(self, examples, run, device, reference, tmp_path):
        checkpoint = tmp_path / "checkpoint"
        output = run(examples / "train", "--device", device, "--steps", 45, "--checkpoint", checkpoint)
        assert weights(output) != reference
        assert weights(run(examples / "train", "--device", device, "--resume", checkpoint)) == reference
        checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
        output = run(examples / "train", "--device", device, "--resume", checkpoint, code=2)
        assert "invalid checkpoint" in output, "half of one is refused"

    @pytest.mark.parametrize("language", ["cpp", "python", "rust", "fortran"])
    def test_language(self, example, target, reference, language):
        assert weights(example("train", language)(target)) == reference

    def test_wrong_arguments(self, examples, run):
        assert "unknown argument --stpes" in run(examples / "train", "--stpes", 3, code=2)
        assert "missing value after --steps" in run(examples / "train", "--steps", code=2)
