"""Keep unit tests, which stand beside the code, out of the wheel; all else is declared in pyproject.toml."""

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithoutTests(build_py):
    """Collects the modules of a package except `*_test.py` and `conftest.py`."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return (package, module, file) for each module that belongs in the wheel."""
        modules = super().find_package_modules(package, package_dir)
        return [entry for entry in modules if not entry[1].endswith("_test") and entry[1] != "conftest"]


setup(cmdclass={"build_py": BuildWithoutTests})
