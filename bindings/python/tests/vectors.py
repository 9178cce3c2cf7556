"""Reader of bindings/vectors.txt, which describes its format."""

from __future__ import annotations

import math
import pathlib
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from hosts import integers

FILE = pathlib.Path(__file__).resolve().parents[2] / "vectors.txt"


@dataclass
class Array:
    """`wanted` are the elements after the case; None: they are not written."""

    name: str
    dtype: str
    shape: tuple
    numbers: list
    wanted: Optional[list]
    is_exact: bool


@dataclass
class Call:
    """A function, a constructor, or a method (.name) of the object."""

    name: str
    options: Dict[str, Any]
    arrays: List[Array]
    again: List[str]  # arrays of previous calls


def scalar(text: str) -> Any:
    if "," in text:
        return tuple(int(number) for number in text.split(","))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None if text == "none" else text


def numbers(text: str, count: int) -> list:
    seed = re.fullmatch(r"seed:(\d+)(?:/(\d+))?", text)
    if seed:
        return [number / int(seed[2] or 1) for number in integers(count, int(seed[1]))]
    given = [float(word) for word in text.split()]
    return [given[i % len(given)] for i in range(count)]


def array(line: str) -> Array:
    parts = re.fullmatch(r"([^=>~]*[^=>~ ])(?: = ?([^>~]*[^>~ ])?)?(?: ([>~]) (.*))?", line)
    declared, before, sign, after = parts.groups()
    name, dtype, extents = declared.split()
    shape = tuple(int(extent) for extent in extents.split("x"))
    count = math.prod(shape)
    wanted = numbers(after, count) if sign else None
    return Array(name, dtype, shape, numbers(before or "0", count), wanted, sign != "~")


def cases(text: str) -> List[List[Call]]:
    """Returns the calls of each case."""
    found: List[List[Call]] = []
    for line in re.sub(r"\n {4,}", " ", re.sub(r" *#.*\n", "\n", text)).split("\n"):
        if not line:
            continue
        head, *words = line.split()
        if line.startswith("  ") and head[0] != ".":
            found[-1][-1].arrays.append(array(line.strip()))
            continue
        options = dict(word.split("=") for word in words if "=" in word)
        call = Call(head, {name: scalar(value) for name, value in options.items()}, [],
                    [word for word in words if "=" not in word])
        if head[0] == ".":
            found[-1].append(call)
        else:
            found.append([call])
    return found
