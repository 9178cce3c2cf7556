"""Metadata that pyproject.toml cannot express: the version, taken from the header, and the tag
of a wheel with the library in it (tools/package/make_wheel): one platform, any Python 3."""
import pathlib
import re

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel

PACKAGE = pathlib.Path(__file__).parent / "mpcore"
NUMBERS = re.findall(r"\bMP_VERSION_(?:MAJOR|MINOR|PATCH) = (\d+)", (PACKAGE / "_sys.py").read_text())


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return any(PACKAGE.glob("libmpcore.so.*"))


class AnyPython3(bdist_wheel):
    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(version=".".join(NUMBERS), distclass=WithLibrary, cmdclass={"bdist_wheel": AnyPython3})
