"""Checks the functions of include/mpcore.hpp: each calls the function of C with its name, passes
the same arguments in the same order, and reports the status."""

import re
from typing import Iterator, List

from .header import Model

# Functions of C whose arguments are converted or allocated; tests/bindings/test_cpp*.cpp call them.
CONVERTED = set("""
    mp_conv2d_get_output_size mp_pool2d_get_output_size mp_scaler_config_from_name
    mp_optimizer_desc_from_name mp_scaler_from_torch mp_scaler_from_megatron mp_malloc
    mp_tensor_list_get_tensor mp_optimizer_get_moments mp_optimizer_save_sync
    mp_optimizer_restore_sync mp_optimizer_get_step_sync mp_optimizer_set_step_sync
    mp_tuning_get_text mp_autocast_explain mp_graph_add_input mp_graph_add_parameter mp_graph_add_state
    mp_graph_add_node mp_graph_get_lists""".split())
# Functions of C with another name in C++.
RENAMED = {"mp_tuning_measure", "mp_grads_all_reduce", "mp_scaler_query_step"}
# name(parameters) { body }; a parameter can have a default such as {}.
FUNCTION = re.compile(r"outcome<[^;(]*?>\s+(\w+)\(((?:[^(){};]|\{\}|\([^()]*\))*)\)\s*(?:const\s*&?\s*)?"
                      r"\{(.*?)(?:\n(?:  )?|; )\}\n", re.S)
CALL = re.compile(r"\b(query|query_struct|create|read_text)(?:<[\w: *]+>)?\((mp_\w+)|\b()(mp_\w+)\(")


def code_of(text: str) -> str:
    """Returns the text without comments."""
    return re.sub(r"(?s)//[^\n]*|/\*.*?\*/", "", text)


def arguments(text: str) -> List[str]:
    """Returns the arguments of the parenthesis with which the text begins."""
    depth, begin, found = 0, 1, []
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 or depth == 1 and letter == ",":
            found.append(" ".join(text[begin:at].split()))
            begin = at + 1
        if depth == 0:
            break
    return [argument for argument in found if argument]


def complaints(text: str, model: Model) -> Iterator[str]:
    """Yields differences between functions of mpcore.hpp and those of C that they call."""
    functions = {f.name: [param.name for param in f.params] for f in model.functions}
    code, read = code_of(text), set(CONVERTED)
    for name, parameters, body in FUNCTION.findall(code):
        if parameters.endswith(" stream"):
            yield f"{name} requires a stream"
        calls = list(CALL.finditer(body))
        for call in calls:
            kind, callee = call[1] or "", call[2] or call[4]
            if callee not in functions or callee in CONVERTED:
                continue
            read.add(callee)
            if not kind and body[:call.start()].rstrip()[-1:] in {"", ";", "{", "}"}:
                yield f"{name} ignores the status of {callee}"
            wanted = functions[callee]
            passed = arguments(body[call.start() + call[0].index("("):])[1 if kind else 0:]
            written = {"": [], "create": wanted[:1], "read_text": wanted[-2:]}.get(kind, wanted[-1:])
            spelled = {"workspace.data": "workspace", "workspace.bytes": "workspace_bytes",
                       "get()": wanted[0]}
            names = [spelled.get(argument, argument.lstrip("&")) for argument in passed]
            if (written + names if kind == "create" else names + written) != wanted:
                yield f"{name} passes {', '.join(passed)} to {callee}({', '.join(wanted)})"
            if len(calls) > 1:
                continue
            if callee not in RENAMED and not callee.endswith(f"_{name}"):
                yield f"{name} calls {callee}"
            own = [re.sub(r"\s*=.*", "", one).split()[-1].lstrip("*&")
                   for one in arguments(f"({parameters})")]
            given = [one for one, argument in zip(names, passed)
                     if argument not in ("get()", "workspace.bytes")]
            if own != [one for one in given if one in own]:
                yield f"{name}({', '.join(own)}) has the arguments of {callee} in another order"
    for f in model.functions:
        if f.result.base == "mp_status_t" and f.name not in read and re.search(rf"\b{f.name}\b", code):
            yield f"the call of {f.name} cannot be read by bindings/generate/forwarding.py"
