"""Operators of one's own: modules that installed packages name under the entry point group ``opatlas.operators``.

Importing such a module enters its operators (:func:`compiler.ops.registry.register`), the converters that lead to them
(:func:`compiler.frontends.onnx.converts` with ``domain=``), and their schemas (``onnx.defs.register_schema``).
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

from compiler.errors import BrokenExtension

GROUP: Final = "opatlas.operators"

_loaded: set[str] = set()


def load_extensions() -> bool:
    """Import what is installed, once; whether there was anything new. Raises BrokenExtension.

    Called where an operator or a domain is not known: who has no extension does not pay for the search.
    """
    found = [point for point in entry_points(group=GROUP) if point.name not in _loaded]
    for point in found:
        _loaded.add(point.name)
        try:
            point.load()
        except Exception as error:
            msg = f"extension '{point.name}' ({point.value}) cannot be imported: {type(error).__name__}: {error}"
            raise BrokenExtension(msg) from error
    return bool(found)
