"""The raw bindings match the C compiler: size, alignment and offsets of every struct, every
constant, and the bytes of every default.  `generate --probe` prints one program per language; all
must print the same lines.  `generate --check` reports functions that a binding lacks."""
import json
import pathlib
import re
import shutil
import sys

import pytest

RUST, FORTRAN, PYTHON = "bindings/rust/src", "bindings/fortran/mpcore_c.f90", "bindings/python/mpcore"
CPP = "include/mpcore.hpp"
# File, pattern, replacement, and message of --check.  The faults of a group are independent of each
# other, and are injected together.
FAULTS = {
    "bindings": [
        (f"{RUST}/sys.rs", r"weight_decay: f32,\s", "", f"{RUST}/sys.rs has no mp_param_group_t.weight_decay\n"),
        (FORTRAN, " weight_decay = 0,", "", f"{FORTRAN} has no mp_param_group_t.weight_decay\n"),
        (FORTRAN, "MP_ACT_DGELU", "MP_ACT_DGEL", f"{FORTRAN} has no MP_ACT_DGELU\n"),
        (f"{PYTHON}/_sys.py", " weight_decay", "", f"{PYTHON}/_sys.py has no mp_param_group_t.weight_decay\n"),
        (f"{PYTHON}/_sys.py", "mp_scale_step", "mp_scale_ste", f"{PYTHON}/_sys.py has no mp_scale_step\n"),
        (f"{PYTHON}/layers.py", "lib.mp_pool2d_backward", "", f"{PYTHON} has no mp_pool2d_backward\n"),
        (f"{PYTHON}/training.py", '"mp_scaler_destroy"', '""', f"{PYTHON} has no mp_scaler_destroy\n"),
        (f"{RUST}/conv.rs", "mp_conv2d_wgrad", "mp_conv2d_dgrad", f"{RUST} has no mp_conv2d_wgrad\n"),
        (f"{PYTHON}/graph.py", r"check\((lib.mp_graph_compile\(.*)\)", r"\1",
         "graph.py ignores the status of mp_graph_compile"),
        ("bindings/fortran/mpcore_described.f90", r"(add_input\(.*\n +stat), errmsg", r"\1",
         "mpcore_described.f90 omits stat and errmsg: call mp_check(mp_graph_add_input("),
        ("bindings/fortran/mpcore_network.f90", r"(mp_graph_bind\(.*\n) +call mp_check\(.*\n", r"\1",
         "mpcore_network.f90 ignores the status of mp_graph_bind"),
        ("bindings/rust/Cargo.toml", "(?m)^version = .*", 'version = "9.9.9"', "Cargo.toml must have version"),
        ("fpm.toml", "(?m)^version = .*", 'version = "9.9.9"', "fpm.toml must have version"),
        # Comments still name the functions.
        (CPP, r"    return check\(mp_scale_step\(.*\n", "", f"{CPP} does not call mp_scale_step\n"),
        (CPP, r"(?s)  outcome<void> pool2d_backward\(.*?\n  }\n", "", f"{CPP} does not call mp_pool2d_backward\n"),
        (CPP, r"mp_pointwise\(get\(\), &desc, a, b", "mp_pointwise(get(), &desc, b, a",
         f"{CPP}: pointwise passes get(), &desc, b, a, y, stats, stream to mp_pointwise(context, desc, a, b, y, "),
        (CPP, r"const void \*dy, void \*dx,", "void *dx, const void *dy,",
         f"{CPP}: glu_backward(desc, x, dx, dy, stats, stream) has the arguments"),
        (CPP, r"(mp_rnn_backward_data\(get\(\),.*, workspace.bytes), stream", r"\1, nullptr",
         f"{CPP}: rnn_backward_data passes get(), &desc, &tensors, workspace.data, workspace.bytes, nullptr to "),
        (CPP, r"mp_loss_workspace_size, get\(\), &desc", "mp_loss_workspace_size, &desc, get()",
         f"{CPP}: loss_workspace_size passes &desc, get() to mp_loss_workspace_size("),
        (CPP, r"(mp_gemm_explain, get\(\), &desc), epilogue", r"\1",
         f"{CPP}: gemm_explain passes get(), &desc to mp_gemm_explain(context, desc, epilogue, text, bytes)"),
        (CPP, "mp_rnn_backward_weights\\(", "mp_rnn_backward_data(",
         f"{CPP}: rnn_backward_weights calls mp_rnn_backward_data"),
        (CPP, r"(glu_forward\(.*\n.* stream) = nullptr", r"\1", f"{CPP}: glu_forward requires a stream\n"),
        (CPP, r"return check\((mp_sum_rows\(.*\))\);", r"\1; return check(MP_SUCCESS);",
         f"{CPP}: sum_rows ignores the status of mp_sum_rows\n"),
        (CPP, r"(rope\(.*\n?.*\n?.*)\) const \{", r"\1) const noexcept {",
         f"{CPP}: the call of mp_rope cannot be read by ")],
    "rules of headers": [
        ("include/mpcore/comm.h", "MP_REDUCE_SUM = 1", "MP_REDUCE_SUM = 0",
         "mp_reduce_op_t: MP_REDUCE_SUM = 0, but 0 means not set"),
        ("include/mpcore/rnn.h", "MP_RNN_(?!FLAG)", "MP_LR_", "and mp_rnn_cell_t have the same prefix MP_LR_"),
        ("include/mpcore/step.h", "MP_STEP_FLAG_", "MP_STEP_",
         "mp_step_flags_t: the prefix MP_STEP_ must end in _FLAG_"),
        ("include/mpcore/tensors.h", "Frozen", "Small", "mp_tensor_report_t has no struct_size")],
    "another value": [
        ("include/mpcore/gemm.h", "MP_ACT_DGELU = 4", "MP_ACT_DGELU = 5", " does not match mpcore.h\n")],
}


@pytest.fixture(scope="module")
def generate(root, run):
    return lambda *arguments, code=0: run(sys.executable, "-B", root / "bindings/generate/generate", *arguments,
                                          code=code)


@pytest.fixture(scope="module")
def probe(generate, tmp_path_factory):
    """probe(language, name, before=""): writes the program that prints the ABI of that language."""
    folder = tmp_path_factory.mktemp("probe")

    def write(language: str, name: str, before: str = "") -> pathlib.Path:
        (folder / name).write_text(before + generate("--probe", language), encoding="utf-8")
        return folder / name
    return write


@pytest.fixture(scope="module")
def link(build) -> list:
    """Linker flags for the library, which initializes the defaults."""
    return [f"-L{build}", "-lmpcore", f"-Wl,-rpath,{build}"]


@pytest.fixture(scope="module")
def c_lines(probe, run, cc, link) -> list:
    source = probe("c", "probe.c")
    run(*cc, "-std=c99", "-Iinclude", source, *link, "-o", source.with_suffix(""))
    lines = run(source.with_suffix("")).splitlines()
    assert lines
    return lines


def test_python(probe, run, build, c_lines):
    output = run(sys.executable, "-B", probe("python", "probe.py"),
               env={"MPCORE_DIR": str(build), "PYTHONPATH": "bindings/python"})
    assert output.splitlines() == c_lines


def test_rust(probe, run, root, build, c_lines, need, tmp_path):
    need("rustc", "the raw binding of Rust")
    modules = "".join(f'#[macro_use] #[path = "{root}/{RUST}/{name}.rs"] mod {name};\n' for name in ("macros", "sys"))
    source = probe("rust", "probe.rs", modules)
    run("rustc", "--edition", "2021", "-A", "warnings", source, "-L", build, "-l", "mpcore", "-C",
        f"link-arg=-Wl,-rpath,{build}", "-o", tmp_path / "probe_rust")
    assert run(tmp_path / "probe_rust").splitlines() == c_lines


def test_fortran(probe, run, c_lines, link, need, tmp_path):
    need("gfortran", "the raw binding of Fortran")
    run("gfortran", "-std=f2018", "-O0", f"-J{tmp_path}", FORTRAN, probe("fortran", "probe.f90"), *link, "-o",
        tmp_path / "probe_fortran")
    assert run(tmp_path / "probe_fortran").splitlines() == c_lines


def c_pattern(kind: dict, model: dict) -> str:
    """Returns a pattern of the C type that gfortran writes for a type of the header."""
    scalar = {"void": "void", "float": "float", "double": "double", "int64_t": "long", "uint64_t": "long",
              "size_t": "long", "uint8_t": "signed char"}.get(kind["base"], "int")
    if any(kind["base"] == callback[0] for callback in model["callbacks"]):
        return r"int \(\*callback\)\(\)"
    if kind["pointers"] or any(kind["base"] == handle[0] for handle in model["handles"]):
        is_struct = any(kind["base"] == struct["name"] for struct in model["structs"])
        return rf"(const )?({kind['base'] if is_struct else scalar}|void) \*\w*"
    return rf"{scalar} \w*"


def fortran_dummies(text: str) -> dict:
    """Returns the declared type and attributes of dummies: {function: {dummy: declaration}}."""
    interface = re.search(r"(?s)^  interface\n(.*?)^  end interface", text, re.M)[1]
    dummies: dict = {}
    for statement in re.split(r";|\n", interface):
        begin = re.search(r"\b(?:function|subroutine) (mp_\w+)\(", statement)
        kind, _, names = statement.strip().partition(" :: ")
        if begin:
            current = dummies[begin[1]] = {}
        current.update((name, kind) for name in re.findall(r"\w+", names))
    return dummies


def c_ptr_pattern(param: dict, model: dict) -> str:
    """Returns a pattern of the declaration of a type(c_ptr) dummy: by reference if the function
    writes a pointer or a handle of the caller, otherwise by value."""
    pointers = param["type"]["pointers"]
    is_handle = any(param["type"]["base"] == handle[0] for handle in model["handles"])
    is_result = len(pointers) == 2 and not pointers[0] or len(pointers) == 1 and is_handle
    return r"type\(c_ptr\), " + (r"intent\((in)?out\)(, optional)?" if is_result else "value")


def test_arguments_of_fortran(run, root, generate, need, tmp_path):
    """Each argument of each function is passed as the header declares it.  gfortran prints order,
    name, size, kind, and by value or by reference, except for type(c_ptr): it prints void * for
    both, so that their declarations are read."""
    need("gfortran", "the raw binding of Fortran")
    model = json.loads(generate("--json"))
    text = run("gfortran", "-std=f2018", "-fsyntax-only", "-fc-prototypes", f"-J{tmp_path}", FORTRAN)
    prototypes = {name: (result, arguments) for result, name, arguments in re.findall(r"^(.*?)(mp_\w+) \((.*)\);$", text, re.M)}
    source = re.sub(r"&\n\s*", "", (root / FORTRAN).read_text(encoding="utf-8"))
    dummies = fortran_dummies(source)
    for first, others in re.findall(r"procedure\((\w+)\), bind\(c\) :: (.*)", source):
        for name in others.split(", "):
            prototypes[name], dummies[name] = prototypes[first], dummies[first]
    assert len(model["functions"]) > 100
    for function in model["functions"]:
        result, arguments = prototypes[function["name"]]
        assert re.fullmatch(c_pattern(function["result"], model), result), function["name"]
        given = arguments.split(", ") if arguments else []
        assert len(given) == len(function["params"]), function["name"]
        for argument, param in zip(given, function["params"]):
            assert re.search(r"\w+(?=\)\(\)$|$)", argument)[0] == param["name"].lower(), argument
            assert re.fullmatch(c_pattern(param["type"], model), argument), (function["name"], argument)
            if "void *" in argument:
                declared = dummies[function["name"]][param["name"]]
                assert re.fullmatch(c_ptr_pattern(param, model), declared), (function["name"], param["name"], declared)


def test_fortran_keeps_results_of_refused_calls(root):
    """gfortran 14 drops stores before a call with intent(out), gfortran 12 does not."""
    assert "intent(out)" not in (root / FORTRAN).read_text(encoding="utf-8")


@pytest.mark.parametrize("group", FAULTS)
def test_check_reports_injected_faults(generate, root, tmp_path, group):
    for folder in ("include", "bindings"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("target", "__pycache__"))
    shutil.copy(root / "fpm.toml", tmp_path)
    for name, pattern, replacement, _ in FAULTS[group]:
        text = (tmp_path / name).read_text(encoding="utf-8")
        changed = re.sub(pattern, replacement, text)
        assert changed != text, f"{pattern} does not match"
        (tmp_path / name).write_text(changed, encoding="utf-8")
    output = generate("--check", "--root", tmp_path, code=1)
    assert [message for *_, message in FAULTS[group] if message not in output] == [], output
