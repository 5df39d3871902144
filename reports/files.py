"""Files that appear whole or not at all; devices and pipes are written to as they are."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def atomic_text(path: Path) -> Iterator[IO[str]]:
    """Open a file beside `path` for text and rename it to `path` at the end; on an error `path` stays as it was."""
    with _renamed(path) as name, name.open("w", encoding="utf-8", newline="") as stream:
        yield stream


@contextmanager
def atomic_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file beside `path` for bytes and rename it to `path` at the end; on an error `path` stays as it was."""
    with _renamed(path) as name, name.open("wb") as stream:
        yield stream


@contextmanager
def _renamed(path: Path) -> Iterator[Path]:
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        # A device or a pipe is written to; nothing may take its place.
        yield path
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, text = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    os.close(handle)
    name = Path(text)
    try:
        yield name
        # mkstemp makes files that only their owner can read; a report is for everyone.
        name.chmod(0o644)
        name.replace(path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise
