"""The package under test is the one beside this folder; pytest 6 cannot be told so in pytest.ini."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
