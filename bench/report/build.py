"""Facts from a build: sizes, compile times, and predictions of the cost model."""
import dataclasses
import json
import pathlib
import subprocess

from codegen import compile_times, facts  # of tools/gpu, where the tool that imports this looks

PREDICTED = ["sm_90"]


@dataclasses.dataclass
class Build:
    """Data of a build; parts that were not built are empty."""
    library_bytes: dict
    compile_seconds: dict  # codegen.compile_times
    predictions: dict  # by class of device, as mptune --predict writes them


def _predictions(mptune: pathlib.Path, bench: pathlib.Path) -> dict:
    if not mptune.exists():
        return {}
    return {device_class: json.loads(subprocess.run(
        [mptune, "--predict", device_class, "--home", bench, "--json", "-"], capture_output=True, text=True,
        check=True).stdout) for device_class in PREDICTED}


def read(folder: pathlib.Path, bench: pathlib.Path) -> Build:
    """`folder`: build/, which need not exist."""
    library = folder / "libmpcore.so"
    return Build(library_bytes=facts.library_bytes(library) if library.exists() else {},
                 compile_seconds=compile_times.gather(folder / "cuda"),
                 predictions=_predictions(folder / "mptune", bench))
