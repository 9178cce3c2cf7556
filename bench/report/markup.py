"""Pieces of HTML, and numbers as text."""
import html

GAP = "–"


def escape(value) -> str:
    return html.escape(str(value))


def breakable(value) -> str:
    """Allows a line break after each underscore of a name, for narrow screens."""
    return escape(value).replace("_", "_<wbr>")


def is_number(text: str) -> bool:
    return text == GAP or text.replace(".", "").replace("%", "").replace("×", "").isdigit()


def table(head: list, rows: list) -> str:
    """Cells are text; columns of numbers are right-aligned."""
    rows = [[str(cell) for cell in row] for row in rows]
    classes = [' class="number"' if rows and all(is_number(row[i]) for row in rows) else ""
               for i in range(len(head))]
    lines = ["<tr>" + "".join(f"<th{kind}>{escape(cell)}</th>"
                              for cell, kind in zip(head, classes)) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td{kind}>{breakable(cell)}</td>"
                               for cell, kind in zip(row, classes)) + "</tr>" for row in rows]
    return '<div class="scroll"><table>\n' + "\n".join(lines) + "\n</table></div>"


def folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>\n{body}\n</details>"


def figure(value, digits: int = 2) -> str:
    return GAP if value is None else f"{value:.{digits}f}"


def time(us) -> str:
    return GAP if us is None else f"{us:.1f}"


def percent(value, digits: int = 1) -> str:
    return GAP if value is None else f"{value:.{digits}f}%"
