"""Line wrapping of the generated files."""

WIDTH = 120  # columns


def wrapped(parts: list, first: str, indent: str, end: str = "", separator: str = ",") -> str:
    """Joins parts.  Lines begin with `indent`, the first with `first`; `end` continues a line."""
    lines = [first]
    for at, part in enumerate(parts, 1):
        part += separator if at < len(parts) else ""
        if at > 1 and len(lines[-1] + part + end) > WIDTH:
            lines.append(indent)
        lines[-1] += part + " "
    return f"{end}\n".join(line.rstrip() for line in lines)
