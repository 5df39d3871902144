"""From a name on the command line to a backend."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from types import ModuleType
from typing import Any

from onnx import ModelProto
from onnx.backend.base import Backend
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from conformance.backends.protocol import BackendUnderTest, CaseFailure, Program
from conformance.comparison import Output
from conformance.errors import UnknownBackend
from reports.record import Outcome, Stage

_PARTS = frozenset({"protocol", "registry"})


def built_in_names() -> list[str]:
    """Return the names of the built-in backends."""
    folder = importlib.import_module("conformance.backends").__path__
    found = (module.name for module in pkgutil.iter_modules(folder))
    return sorted(name for name in found if name not in _PARTS and not name.endswith("_test"))


def default_target(name: str) -> str:
    """Return the target that a backend is made for when none is asked for."""
    if name not in built_in_names():
        return "cpu"
    return str(getattr(importlib.import_module(f"conformance.backends.{name}"), "DEFAULT_TARGET", "cpu"))


def load_backend(name: str, target: str) -> BackendUnderTest:
    """Return the backend `name`, made for `target`. Raises `UnknownBackend` with one line that says what was tried."""
    if name in built_in_names():
        made: BackendUnderTest = _imported(f"conformance.backends.{name}").create(target)
        return made
    module = _imported(name)
    found = getattr(module, "backend", None) or _only_backend_class(module) or module
    if callable(getattr(found, "prepare", None)) or callable(getattr(found, "compile", None)):
        return ForeignBackend(name, found, target)
    raise UnknownBackend(
        f"backend {name!r}: the module has neither compile(model) nor an onnx.backend.base.Backend with prepare(model)"
    )


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:  # a foreign module may raise anything while it is imported
        built_in = ", ".join(built_in_names())
        raise UnknownBackend(
            f"unknown backend {name!r}: expected one of {built_in}, or the name of a module ({error})"
        ) from error


def _only_backend_class(module: ModuleType) -> type[Backend] | None:
    classes = [
        member
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, Backend) and member.__module__ == module.__name__
    ]
    return classes[0] if len(classes) == 1 else None


class ForeignBackend:
    """A backend that knows nothing of this suite, through either protocol."""

    shares: frozenset[str] = frozenset()

    def __init__(self, name: str, backend: Any, target: str) -> None:  # noqa: ANN401 - a module, class or object
        self.name = name
        self._backend = backend
        self._device = target.upper() if target.lower() in ("cpu", "cuda") else "CPU"

    def compile(self, model: ModelProto) -> Program:
        if callable(getattr(self._backend, "compile", None)):
            program: Program = self._backend.compile(model)
            return program
        prepared = self._backend.prepare(model, self._device)
        if prepared is None:
            raise NotImplementedError("prepare returned None")
        return _Prepared(prepared)

    def explain(self, error: Exception, stage: Stage) -> CaseFailure:
        return explain_generic(error, stage)

    def versions(self) -> dict[str, str]:
        package = self.name.partition(".")[0]
        try:
            names = packages_distributions().get(package, [package])
            return {name: version(name) for name in names}
        except PackageNotFoundError:
            return {}


class _Prepared:
    def __init__(self, prepared: Any) -> None:  # noqa: ANN401 - a BackendRep, or what a backend takes for one
        self._prepared = prepared

    def run(self, inputs: Sequence[Output]) -> Sequence[Output]:
        outputs = self._prepared.run(list(inputs))
        return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def explain_generic(error: Exception, stage: Stage) -> CaseFailure:
    """Return `unsupported` for the refusals that every backend has, `error` for any other exception."""
    refused = isinstance(error, BackendIsNotSupposedToImplementIt | NotImplementedError)
    lines = str(error).strip().splitlines()
    return CaseFailure(
        Outcome.UNSUPPORTED if refused else Outcome.ERROR,
        stage,
        type(error).__name__,
        (lines[0] if lines else type(error).__name__)[:300],
        named=type(error).__module__ != "builtins" or refused,
    )
