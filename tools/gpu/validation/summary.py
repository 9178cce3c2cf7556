"""Results of all steps as JSON and as text, updated after each step.

A run of one stage keeps the results of other stages if they belong to the same library.
"""
import dataclasses
import json
import os
import pathlib
import shlex

from . import runner

SCHEMA = 1


def outcome(statuses) -> str:
    statuses = list(statuses)
    if any(status in runner.FAILURES for status in statuses):
        return "failed"
    return "incomplete" if any(status in runner.GAPS for status in statuses) else "passed"


class Summary:
    def __init__(self, path: pathlib.Path, steps, asked, about: dict):
        """@param steps all steps; asked: the steps of this run; about: the device, "library" and
        others."""
        self.path, self.steps, self.asked, self.about = path, steps, asked, about
        self._results = self._earlier()
        for step in asked:
            self.note(step, runner.Result(runner.NOT_RUN, "not reached"))

    def _earlier(self) -> dict:
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if found.get("schema") != SCHEMA or found["about"].get("library") != self.about["library"]:
            return {}
        fields = [field.name for field in dataclasses.fields(runner.Result)]
        return {(entry["stage"], entry["step"]): runner.Result(**{name: entry[name] for name in fields})
                for entry in found["steps"]}

    def note(self, step, result: runner.Result):
        self._results[step.stage, step.name] = result

    def result_of(self, step) -> runner.Result:
        return self._results.get((step.stage, step.name), runner.Result(runner.NOT_RUN, "not requested yet"))

    def outcome_of_run(self) -> str:
        return outcome(self.result_of(step).status for step in self.asked)

    def outcome_of_all(self) -> str:
        return outcome(self.result_of(step).status for step in self.steps)

    def lines(self):
        stage = None
        for step in self.steps:
            result = self.result_of(step)
            if step.stage != stage:
                stage = step.stage
                yield f"{stage}"
            yield f"  {step.name:<24} {result.status:<10} {result.seconds:7.1f} s  {result.detail}".rstrip()
        yield f"this run: {self.outcome_of_run()}; all stages together: {self.outcome_of_all()}"

    def write(self):
        run = {
            "schema": SCHEMA, "about": self.about,
            "result": self.outcome_of_run(), "result_of_all": self.outcome_of_all(),
            "steps": [{"stage": step.stage, "step": step.name, "command": shlex.join(step.command),
                       **dataclasses.asdict(self.result_of(step))} for step in self.steps]}
        _replace(self.path, json.dumps(run, indent=1) + "\n")
        heading = ", ".join(f"{name} {value}" for name, value in self.about.items())
        _replace(self.path.with_suffix(".txt"), "\n".join([heading, *self.lines()]) + "\n")


def _replace(path: pathlib.Path, text: str):
    """Replaces the file atomically."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)
