"""Names that the public headers declare, and the sections of the headers."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings"))
from generate import header  # noqa: E402

HEADER = ROOT / "include" / "mpcore.h"
GUIDE = ROOT / "docs"
MODEL = header.read(HEADER)
TEXT = "".join(path.read_text() for path in header.files_of(HEADER))

# Functions, types, enumerators and macros: all that a page may link to.
DECLARED = MODEL.names() | set(re.findall(r"^#define (MP_\w+)", TEXT, re.M))
# (id, title) of each group, in order.
SECTIONS = re.findall(r"^/\*\* @defgroup (\w+) (.*)$", TEXT, re.M)

# The guide's pages in their order.
PAGES = re.findall(r"^- \[.*?\]\((\w[\w-]*)\.md\)", (GUIDE / "README.md").read_text(), re.M)


def title(page):
    return (GUIDE / f"{page}.md").read_text().splitlines()[0].lstrip("# ")


def slug(heading):
    """Returns the anchor that GitHub and others give a heading."""
    text = re.sub(r"[`*]|\[|\]\([^)]*\)", "", heading.strip()).lower()
    return re.sub(r" ", "-", re.sub(r"[^\w\- ]", "", text))
