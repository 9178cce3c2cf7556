"""Checks that the safe layers of Rust and Python use every function, and that those of Python and
Fortran report every status.  The compiler checks the status in Rust (must_use)."""

import pathlib
import re

from .header import Model

HOSTS = pathlib.Path("bindings")
# Files of each layer, the generated file to exclude, and the pattern of a call.
LAYERS = {
    HOSTS / "python/mpcore": ("*.py", "_sys.py", r"""(?:\blib\.|_destroy = ")(mp_\w+)"""),
    HOSTS / "rust/src": ("*.rs", "sys.rs", r"\b(mp_\w+)"),  # also in arguments of macros
}
# Functions that a layer may omit, with the reason.
STATES = "state dictionaries exist only in Python, which converts those of torch"
ARRAYS = "tensor lists in Python keep their arrays, including those of moments"
LEFT_OUT = {
    "mp_status_string": "the enum of status codes has the names",
    "mp_dtype_size": "the types of the layer have sizes",
    "mp_dtype_name": "the types of the layer have names",
    "mp_set_log_callback": "the callback may run on any thread; available in the raw binding",
    "mp_tensor_list_get_tensor": ARRAYS,
    "mp_optimizer_get_moments": ARRAYS,
    "mp_attention_set_kernel": "for tests of kernels",
    "mp_scaler_from_torch": STATES,
    "mp_scaler_to_torch": STATES,
    "mp_scaler_from_megatron": STATES,
    "mp_scaler_to_megatron": STATES,
}


# A call in Python whose status is passed neither to check() nor to read_text().  A function that is
# itself an argument (lib.mp_graph_add_state) is called by a helper, which tests of errors cover.
UNCHECKED_IN_PYTHON = re.compile(r"(?<!check\()(?<!read_text\(lambda text, size: )\blib\.(mp_\w+)\(")
# A report in Fortran without the optional arguments of the caller, and one of a local status.
INCOMPLETE_IN_FORTRAN = re.compile(r"call mp_(?:check|refuse)\((?:[^&\n]|&\n)*(?<!stat, errmsg)\) *(?:!.*)?\n")
REPORT_IN_FORTRAN = "call mp_check(status, stat, errmsg)"


def unreported(root: pathlib.Path, model: Model) -> list:
    """Returns calls of functions whose status does not reach the caller."""
    reporting = {f.name for f in model.functions if f.result.base == "mp_status_t"}
    found = []
    for path in sorted((root / HOSTS / "python/mpcore").glob("*.py")):
        names = UNCHECKED_IN_PYTHON.findall(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(root)} ignores the status of {name}" for name in names if name in reporting]
    for path in sorted((root / HOSTS / "fortran").glob("mpcore*.f90")):
        code = re.sub(r"(?m)^ *!.*\n", "", path.read_text(encoding="utf-8"))
        calls = INCOMPLETE_IN_FORTRAN.findall(code)
        found += [f"{path.relative_to(root)} omits stat and errmsg: {' '.join(call.split())}" for call in calls]
        for procedure in re.split(r"\n  end (?:subroutine|function)\b", code):
            call = re.search(r"\bstatus = (mp_\w+)\(", procedure)
            if call and REPORT_IN_FORTRAN not in procedure:
                found.append(f"{path.relative_to(root)} ignores the status of {call[1]}")
    return found


def complaints(root: pathlib.Path, model: Model) -> list:
    """Returns functions that a layer does not call, and unnecessary entries of LEFT_OUT.

    Names in comments do not count."""
    by_value = [f.init for f in model.inlines]  # called by mp_*_default of the raw binding
    names = [f.name for f in model.functions if f.name not in by_value]
    found = unreported(root, model)
    found += [f"LEFT_OUT has {name}, which mpcore.h does not declare" for name in LEFT_OUT if name not in names]
    users: dict = {}
    for folder, (pattern, made, call) in LAYERS.items():
        files = [path for path in sorted((root / folder).glob(pattern)) if path.name != made]
        text = "\n".join(path.read_text(encoding="utf-8") for path in files)
        code = re.sub(r"(?m)^\s*(//|#).*$", "", text)
        used = set(re.findall(call, code))
        for name in names:
            if name in used:
                users.setdefault(name, set()).add(folder)
            elif name not in LEFT_OUT:
                found.append(f"{folder} has no {name}")
    found += [f"LEFT_OUT has {name}, which all layers use" for name in LEFT_OUT
              if len(users.get(name, ())) == len(LAYERS)]
    return found
