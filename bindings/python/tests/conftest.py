"""Puts the package in the parent folder on sys.path; pytest 6 cannot do so in pytest.ini."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
