"""One GPU for several programs at a time.

Each has it to itself for some milliseconds, unless CUDA's Multi-Process Service (MPS) runs their kernels together: of
twelve processes of tests on an H200 some 166 tests had passed after 112 s, of eight with MPS more than 730 after 85 s.
"""
import contextlib
import os
import shutil
import subprocess
import tempfile

CONTROL = "nvidia-cuda-mps-control"


@contextlib.contextmanager
def shared_gpu():
    """What the programs need in their environment: nothing where there is no MPS, or it does not start."""
    control = shutil.which(CONTROL)
    if control is None:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="mps") as folder:
        own = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}

        def tell(*arguments, said="") -> bool:
            return subprocess.run([control, *arguments], input=said, text=True, env=os.environ | own, timeout=30,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0

        if not tell("-d"):
            yield {}
            return
        try:
            yield own
        finally:
            tell(said="quit\n")
