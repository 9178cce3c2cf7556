"""Which functions the safe layers of Rust and Python use."""

import pathlib
import re

from .header import Model

HOSTS = pathlib.Path("bindings")
# The layers, without what is made from the header.
LAYERS = {
    HOSTS / "python/mpcore": ("*.py", {"_sys.py"}),
    HOSTS / "rust/src": ("*.rs", {"sys.rs", "enums.rs"}),
}
# Not used by both, and why.
STATES = "state dictionaries are of Python, and torch's alone are asked for there"
ARRAYS = "lists of Python have their arrays, those of moments too"
LEFT_OUT = {
    "mp_status_string": "the enum of statuses has the names",
    "mp_dtype_size": "the layer's own types have their sizes",
    "mp_dtype_name": "and names",
    "mp_set_log_callback": "called from any thread; the raw binding has it for who takes care of that",
    "mp_tensor_list_get": ARRAYS,
    "mp_optimizer_moments": ARRAYS,
    "mp_scaler_from_torch": STATES,
    "mp_scaler_to_torch": STATES,
    "mp_scaler_from_megatron": STATES,
    "mp_scaler_to_megatron": STATES,
}


def complaints(root: pathlib.Path, model: Model) -> list:
    """What is neither used nor listed, and what is listed in vain.  Used is what is called, lib.mp_gemm
    or sys::mp_gemm; a comment or a manual that names it does not count."""
    by_value = [f.init for f in model.inlines]  # where it says what is left to set
    names = [f.name for f in model.functions if f.name not in by_value]
    found = [f"LEFT_OUT has {name}, which mpcore.h has not" for name in LEFT_OUT if name not in names]
    users: dict = {}
    for folder, (pattern, made) in LAYERS.items():
        files = [path for path in sorted((root / folder).glob(pattern)) if path.name not in made]
        text = "\n".join(path.read_text(encoding="utf-8") for path in files)
        code = re.sub(r"(?m)^\s*(//|#).*$", "", text)
        used = set(re.findall(r"""(?:\blib\.|\bsys::|_destroy = ")(mp_\w+)""", code))
        for name in names:
            if name in used:
                users.setdefault(name, set()).add(folder)
            elif name not in LEFT_OUT:
                found.append(f"{folder} has no {name}")
    found += [f"LEFT_OUT has {name}, which all layers use" for name in LEFT_OUT
              if len(users.get(name, ())) == len(LAYERS)]
    return found
