"""Where cases come from, one file a suite. `SUITES` is the only list of them; each is made when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from conformance.case import Suite
from conformance.errors import BadSelection

SUITES: Mapping[str, str] = {
    "operators": "conformance.suites.operators",
    "graphs": "conformance.suites.graphs",
    "onnx-official": "conformance.suites.onnx_official",
    "blocks": "conformance.suites.blocks",
    "models": "conformance.suites.models",
    "keras": "conformance.suites.keras_layers",
    "random": "conformance.suites.random_graphs",
    "opinfo": "conformance.suites.opinfo",
    "invalid": "conformance.suites.invalid",
    "roundtrip": "conformance.suites.roundtrip",
}
"""Name on the command line -> module; the module's `create()` returns the suite."""


def make_suite(name: str) -> Suite:
    """Return the suite `name`, or that of a module path. Raises `BadSelection`."""
    module = SUITES.get(name, name if "." in name else "")
    if not module:
        raise BadSelection(f"unknown suite {name!r}: expected one of {', '.join(SUITES)}")
    suite: Suite = importlib.import_module(module).create()
    return suite
