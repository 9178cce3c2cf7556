"""Experiments: benches of recently changed kernels, compared with their predictions.

experiments.csv has a line per experiment, most valuable first: a number that groups lines of
one change, the rows of mpbench, the compared field, the predicted range of its geometric mean, and
--tune if the rows are those of measured kernels.
Predictions are computed from machine code and counts, so a result outside its range is reported and
is not a failure.  All experiments together take at most 12 minutes.

Row 15, machine code for sm_89, sm_100 and sm_120, has no line, because an H200 does not load it.
"""
import csv
import dataclasses
import json
import pathlib
import statistics

FILE = pathlib.Path(__file__).with_suffix(".csv")
SECONDS = 45  # of each, an estimate: start, peaks of the device, one or two shapes with their peers


@dataclasses.dataclass(frozen=True)
class Experiment:
    row: str
    name: str
    bench: str  # of the rows in the JSON
    set: str
    filter: str
    field: str
    low: str
    high: str
    basis: str
    option: str  # before the set

    def command(self, mpbench: str, path: pathlib.Path) -> tuple:
        sets = (self.option, self.set) if self.set else ()
        if self.option == "--tune":
            sets += ("--out", str(path.with_suffix(".txt")))
        return (mpbench, self.bench.removesuffix("_layer"), *sets, "--filter", self.filter, "--brief",
                "--peer", "cublaslt,cudnn", "--device", "cuda", "--json", str(path))

    def verdict(self, path: pathlib.Path) -> str:
        """@raises ValueError if the result has no row with the field"""
        rows = [row for row in json.loads(path.read_text(encoding="utf-8"))["rows"] if row["bench"] == self.bench]
        values = [row[self.field] for row in rows if self.field in row]
        if not values:
            raise ValueError(f"no row of {self.bench} has {self.field}: no peer, or no shape with \"{self.filter}\"")
        value, low, high = statistics.geometric_mean(values), float(self.low), float(self.high)
        place = "below" if value < low else "above" if value > high else "as"
        predicted = self.low if low == high else f"{self.low} to {self.high}"
        return f"{self.field} {value:.3g}, {place} predicted ({predicted}: {self.basis})"


def read() -> list:
    with FILE.open(encoding="utf-8") as file:
        return [Experiment(**line) for line in csv.DictReader(file, restval="--set")]
