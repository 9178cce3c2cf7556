"""Pieces of HTML, and values as text."""
import html

GAP = "–"


def escape(value) -> str:
    return html.escape(str(value))


def cell(value, form: str = "") -> str:
    """Returns a value in a format of Python; a percent sign at its end is appended."""
    if value is None:
        return GAP
    return f"{value:{form[:-1]}}%" if form.endswith("%") else f"{value:{form}}"


def _is_number(text: str) -> bool:
    return text == GAP or text.replace(".", "").replace("%", "").isdigit()


def table(columns: list, rows: list) -> str:
    """`columns`: (heading, field or function of the row, format).  Numbers are right-aligned."""
    cells = [[cell(read(row) if callable(read) else row.get(read), form) for _, read, form in columns] for row in rows]
    kinds = [' class="number"' if rows and all(map(_is_number, column)) else "" for column in zip(*cells)]
    lines = ["".join(f"<th{kind}>{escape(heading)}</th>" for (heading, *_), kind in zip(columns, kinds))]
    # An underscore may be followed by a line break, for narrow screens.
    lines += ["".join(f"<td{kind}>{escape(text).replace('_', '_<wbr>')}</td>" for text, kind in zip(line, kinds))
              for line in cells]
    return '<div class="scroll"><table>\n' + "".join(f"<tr>{line}</tr>\n" for line in lines) + "</table></div>"


def folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>\n{body}\n</details>"
