"""The JSON of mpbench: read, checked, and put in order by device and date."""
import dataclasses
import json
import math
import pathlib
import re

try:
    import jsonschema
except ModuleNotFoundError:  # tools/gpu/profile_worst on a GPU machine
    jsonschema = None

from . import counted

BENCH = pathlib.Path(__file__).resolve().parent.parent
SCHEMA_FILE = BENCH / "results" / "schema.json"
DTYPES_FILE = BENCH.parent / "base" / "dtypes.h"

# Suites of layers of transformers, whose rows have the same fields.
TRANSFORMERS = ("attention", "norm", "linear_xent", "gated")
# "bench" of all rows.
BENCHES = ("gemm", "epilogue", "batched", "rnn", "rnn_layer", "conv", "layers", *TRANSFORMERS, "step", "calls", "startup",
           "graph")


class BadResults(Exception):
    """Errors in a file, one per line."""


def recurrent_layer(shape: str) -> str:
    """Returns the name of a layer; its GEMMs have the name of the shape."""
    return f"{shape}, layer"


def name_of(row: dict) -> str:
    """Returns the name of a row, without its type."""
    if row["bench"] == "step":
        return f"{row['op']}, {row['layout']}, {row['parameters'] / 1e6:g} M"
    if row["bench"] == "calls":
        return f"{row['call']}, {row['problem']}"
    if row["bench"] == "startup":
        return f"start-up: {row['phase']}"
    if row["bench"] == "graph":
        return f"graph {row['network']}"
    if row["bench"] == "rnn_layer":
        return recurrent_layer(f"{row['set']} {row['shape']}")
    return f"{row['set']} {row['shape']}"


def types_of(row: dict) -> str:
    if "out_dtype" not in row or row["bench"] == "layers":  # older rows of layers have one type
        return row.get("dtype", "")
    return f"{row['dtype']}>{row['out_dtype']}" + ("+" if row["beta"] else "")


def label_of(row: dict) -> str:
    return f"{name_of(row)} {types_of(row)}".strip()


def worst(rows, count: int):
    """(field, rows): the slowest compared with their peer or, without peers, with the peak."""
    mixed = [row for row in rows if row["bench"] in ("gemm", "epilogue", "conv") and row["dtype"] != "fp32"]
    for field in ("ratio_to_peer", "percent_of_peak"):
        having = sorted((row for row in mixed if field in row), key=lambda row: row[field])[:count]
        if having:
            return field, having
    return None, []


def keyed_rows(run: dict) -> dict:
    """(name, types, occurrence) -> row.  DeepBench lists some layers twice."""
    rows, seen = {}, {}
    for row in run["rows"]:
        label = (name_of(row), types_of(row))
        seen[label] = seen.get(label, 0) + 1
        rows[(*label, seen[label])] = row
    return rows


def _invalid(run: dict) -> list:
    """Returns violations of the schema; none if jsonschema is missing."""
    if jsonschema is None:
        return []
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    schema["$defs"]["dtype"]["enum"] = re.findall(r'X\(\w+, "(\w+)"', DTYPES_FILE.read_text(encoding="utf-8"))
    errors = list(jsonschema.Draft202012Validator(schema).iter_errors(run))
    # Fields of an invalid row are also reported as unevaluated.
    errors = [error for error in errors if error.validator != "unevaluatedProperties"] or errors
    return list(dict.fromkeys(f"{error.json_path.removeprefix('$.')}: {_said(error)}" for error in errors))


def _said(error) -> str:
    # {"not": {}} excludes a field.  For a schema of `false`, jsonschema 4.19 does not name it.
    return "is not allowed here" if error.validator_value == {} else error.message


def _beside_hand(times):
    """Contradictions between times of a graph and by hand and their ratios, if any."""
    if times is None:
        return
    for whose in ("", "by_hand_"):
        low, middle, high = (times[f"{whose}{part}_us"] for part in ("q1", "median", "q3"))
        if not low <= middle <= high:
            yield "the median is not between the quartiles"
    if not times["time_over_hand_q1"] <= times["time_over_hand"] <= times["time_over_hand_q3"]:
        yield "time_over_hand is not between its quartiles"
    # In at least half of the rounds, the graph takes its first quartile or longer and the calls by
    # hand take their third or shorter; and vice versa.
    least, most = times["q1_us"] / times["by_hand_q3_us"], times["q3_us"] / times["by_hand_q1_us"]
    if not least * (1 - 1e-6) <= times["time_over_hand"] <= most * (1 + 1e-6):
        yield f"time_over_hand is {times['time_over_hand']:g}, its times give {least:g} to {most:g}"


def _contradictions(run: dict):
    """Rules that a schema cannot express."""
    if run["target"] == "host" and "sample" not in run:
        yield "a result of the host target has no \"sample\""
    if "counted" in run:
        for row in run["rows"]:
            yield from (f"{label_of(row)}: {clause}" for clause in counted.contradictions(row))
        return
    for row in run["rows"]:
        name = label_of(row)
        if not row["q1_us"] <= row["median_us"] <= row["q3_us"]:
            yield f"{name}: the median is not between the quartiles"
        derived = {
            "tflops": lambda: 1e-6 * row["flop"] / row["median_us"],
            "ratio_to_peer": lambda: row["peer_median_us"] / row["median_us"],
            "ratio_to_peer_best": lambda: row["peer_best_median_us"] / row["median_us"],
            "ratio_to_peer_sustained": lambda: row["peer_sustained"]["median_us"] / row["sustained"]["median_us"],
            "speedup_over_fp32": lambda: row["fp32_median_us"] / row["median_us"],
            "speedup_over_tf32": lambda: row["tf32_median_us"] / row["median_us"],
            "time_over_products": lambda: row["median_us"] / row["products_median_us"],
            "percent_of_copy": lambda: 100 * row["gb_per_s"] / row["copy_gb_per_s"],
            "percent_of_peak": lambda: 100 * row["tflops"] / run["peak_tflops"],
        }
        for field, value in derived.items():
            if field not in row:
                continue
            try:
                expected = value()
            except KeyError as missing:
                yield f"{name}: has {field} without {missing}"
                continue
            if not math.isclose(row[field], expected, rel_tol=1e-6):
                yield f"{name}: {field} is {row[field]:g}, its times give {expected:g}"
        if row["bench"] == "graph":
            yield from (f"{name}: {clause}" for clause in _beside_hand(row))
            yield from (f"{name}, host: {clause}" for clause in _beside_hand(row.get("host")))
        beside = row.get("with_w_ih")
        if beside:
            expected = beside["torch_median_us"] / beside["mpcore_median_us"]
            if not math.isclose(beside["ratio_to_torch"], expected, rel_tol=1e-6):
                yield f"{name}: ratio_to_torch is {beside['ratio_to_torch']:g}, its times give {expected:g}"


def read(path: pathlib.Path) -> dict:
    """@raises BadResults if the file is invalid"""
    try:
        run = json.loads(path.read_text(encoding="utf-8"), parse_constant=int)  # int("NaN") fails
    except OSError as error:
        raise BadResults(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise BadResults(f"{path}: must be JSON without NaN, as written by mpbench --json") from error
    wrong = _invalid(run) or list(_contradictions(run))
    if wrong:
        raise BadResults("\n".join(f"{path}: {sentence}" for sentence in wrong))
    run["file"] = path.name
    return run


def git_hash(build_info: str) -> str:
    """Returns the commit in a line of mp_build_info."""
    found = re.search(r"git (\w+)", build_info)
    return found[1] if found else build_info


@dataclasses.dataclass
class Device:
    """All results of one device, oldest first."""
    name: str
    runs: list

    def __post_init__(self):
        # Files with other rows or types complement each other: the newest value of each row is
        # used.
        self.latest, self.previous = {}, {}
        for run in self.runs:
            for key, row in keyed_rows(run).items():
                if key in self.latest:
                    self.previous[key] = self.latest[key]
                self.latest[key] = (row, run)

    @property
    def sample(self):
        """Returns the reason if the results are samples; else None."""
        return next((run["sample"] for run in self.runs if "sample" in run), None)

    @property
    def estimated_costs(self):
        """Returns a note if the newest run selected kernels by estimated costs; else None."""
        if not self.newest.get("estimated_costs"):
            return None
        return f"The cost table of sm_{self.newest['arch']} is estimated, not measured by mptune."

    @property
    def newest(self) -> dict:
        return self.runs[-1]

    @property
    def peaks(self) -> dict:
        """Peaks by name, each from the newest run that measured it."""
        return {one["name"]: one for run in self.runs for one in run.get("peaks", ()) if one["rate"] is not None}

    def rows(self, *benches: str) -> list:
        return [row for row, _ in self.latest.values() if row["bench"] in benches]

    def rows_of(self, run: dict, rows: list) -> list:
        """Returns those of the rows that a run measured."""
        own = {id(row) for row in run["rows"]}
        return [row for row in rows if id(row) in own]

    def fp32_time(self, row: dict):
        """(us, library) of the same row in FP32; None if it was not measured."""
        if "fp32_median_us" in row:
            return row["fp32_median_us"], row["fp32"]
        plain = self.latest.get((name_of(row), "fp32>fp32", 1))
        if plain is None:
            return None
        if plain[0].get("peer_agrees"):
            return plain[0]["peer_median_us"], plain[0]["peer"] + ", FP32"
        return plain[0]["median_us"], "mpcore, FP32"

    def speedup(self, row: dict, baseline: str):
        """FP32 or TF32 time / its time, or None.  `baseline`: "fp32" or "tf32"."""
        if baseline == "tf32":
            return row.get("speedup_over_tf32")
        fp32 = self.fp32_time(row)
        return fp32 and fp32[0] / row["median_us"]


def devices_of(runs: list) -> list:
    by_name = {}
    for run in sorted(runs, key=lambda run: run["date"]):
        by_name.setdefault((run["target"], run["device"]), []).append(run)
    return [Device(name, own) for (_, name), own in sorted(by_name.items())]


def timed(runs: list) -> list:
    return [run for run in runs if "counted" not in run]


def without_samples(runs: list) -> list:
    """Drops samples if there are results."""
    return [run for run in runs if "sample" not in run] or runs
