"""What the public headers declare, and the sections they declare it in."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "include" / "mpcore.h"
GUIDE = ROOT / "docs"

BANNER = re.compile(r"^ \*  ?(?:(\d+)\. (.*)|(Experimental): .*)$")


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def declared(text):
    """Functions, types, enumerators and macros of a C header: all that a page may link to."""
    code = without_comments(text)
    names = set(re.findall(r"\b(mp_\w+) *\(", "\n".join(re.findall(r"^(?:MP_API|static inline)[^{;]*", code, re.M))))
    names |= set(re.findall(r"^# *define (MP_\w+)", code, re.M))
    names |= set(re.findall(r"\}\s*(mp_\w+_t);", code))
    names |= set(re.findall(r"^typedef [^{}]*?\(?\*?\b(mp_\w+_t)\)?(?: *\([^;]*\))?;", code, re.M))
    for body in re.findall(r"enum mp_\w+ \{(.*?)\}", code, re.S):
        names |= set(re.findall(r"\b(MP_\w+)\b(?= *[=,}]| *$)", body, re.M))
    return names


def fields(text):
    """Struct tag or type without _t -> names of its fields."""
    result = {}
    for body, name in re.findall(r"struct \w+ \{(.*?)\n\} (mp_\w+)_t;", without_comments(text), re.S):
        result[name] = set(re.findall(r"\b([A-Za-z_]\w*)(?:\[\d+\])?(?=[;,)])", body))
    return result


def sections(text):
    """(id, title) of each banner comment, in order."""
    found = []
    for line in text.splitlines():
        match = BANNER.match(line)
        if match and (match[3] or match[1]):
            found.append(section_of(match))
    return found


def section_of(match):
    if match[3]:
        return "experimental", "Experimental"
    return f"section{match[1]}", f"{match[1]}. {match[2]}"


def slug(heading):
    """The anchor that GitHub and others give a heading."""
    text = re.sub(r"[`*]|\[|\]\([^)]*\)", "", heading.strip()).lower()
    return re.sub(r" ", "-", re.sub(r"[^\w\- ]", "", text))
