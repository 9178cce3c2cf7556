"""Runs all tests of this folder; the last line is what tests/run adds up."""

import pathlib
import sys
import unittest

folder = pathlib.Path(__file__).parent
sys.path[:0] = [str(folder)]
suite = unittest.defaultTestLoader.discover(str(folder))
result = unittest.TextTestRunner(stream=sys.stdout).run(suite)
for reason in sorted({reason for _, reason in result.skipped}):
    print(f"skipped: Python tests: {reason}")
failed = len(result.failures) + len(result.errors)
skipped = len(result.skipped)
print(f"{result.testsRun - failed - skipped} passed, {failed} failed" +
      (f", {skipped} skipped" if skipped else ""))
sys.exit(failed != 0)
