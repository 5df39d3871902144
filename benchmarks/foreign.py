"""Other tools, each in a virtual environment of its own: their packages ask for versions that ours exclude.

An environment is made under `build/venvs/` at the first use, with the versions that figures were measured with. A tool
is driven by a script of `benchmarks/drivers/` that knows nothing of this project: JSON goes in, JSON comes out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ENVIRONMENTS: Final = Path("build/venvs")
REQUIREMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "scalesim": ("scalesim==3.0.0", "numpy<2"),
    "vela": ("ethos-u-vela==5.2.0",),
    "zigzag": ("zigzag-dse==3.9.1", "six"),  # which it imports and does not ask for
    "jax": ("jax[cpu]==0.10.2",),
}
_DRIVERS: Final = Path(__file__).parent / "drivers"


class ToolFailed(RuntimeError):
    """A tool could not be installed, or ended with an error; the message is the end of what it said."""


def python_of(tool: str) -> Path:
    """Return the interpreter of a tool's environment, made first if there is none. Raises `ToolFailed`.

    The variable `OPATLAS_<TOOL>_PYTHON` names one that exists already.
    """
    given = os.environ.get(f"OPATLAS_{tool.upper()}_PYTHON")
    if given:
        return Path(given)
    folder = ENVIRONMENTS / tool
    python = folder / "bin" / "python"
    marker = folder / "installed"
    wanted = " ".join(REQUIREMENTS[tool])
    if not (marker.exists() and marker.read_text(encoding="utf-8") == wanted):
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS[tool]])
        marker.write_text(wanted, encoding="utf-8")
    return python


def ask(tool: str, question: Mapping[str, Any], *, driver: str | None = None) -> Any:  # noqa: ANN401 - JSON
    """Return what a tool's driver answers. Raises `ToolFailed`."""
    script = _DRIVERS / f"drive_{driver or tool}.py"  # not the name of the package, which it would hide
    answer = _run([str(python_of(tool)), str(script)], json.dumps(question))
    return json.loads(answer.splitlines()[-1])


def _run(command: list[str], given: str = "") -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-15:]
        msg = f"{' '.join(command[:3])} ended with {done.returncode}:\n" + "\n".join(said)
        raise ToolFailed(msg)
    return done.stdout
