"""Compilers under test: the built-in ones by name, any other by `package.module`.

A backend is anything with `compile(model) -> program` whose `program.run(inputs)` returns the outputs, or an
`onnx.backend.base.Backend`. Adding a built-in one is a file here with a function `create(target)`, and an expectations
file of the same name.
"""

from conformance.backends.protocol import (
    BackendUnderTest,
    CaseFailure,
    Program,
    Report,
)
from conformance.backends.registry import built_in_names, default_target, load_backend

__all__ = ["BackendUnderTest", "CaseFailure", "Program", "Report", "built_in_names", "default_target", "load_backend"]
