"""Puts faults into a process: faulty source served to `import`, or faulty functions in place of live ones."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, FunctionType, ModuleType

from conformance.mutation.edits import ROOT, Fault


class _FaultyLoader(SourceFileLoader):
    """Compiles the given source under the name of the real file; neither reads nor writes bytecode."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        del fullname
        return compile(self._source, self.path, "exec", dont_inherit=True)


class FaultFinder(MetaPathFinder):
    """Finds one module: the faulty one. Put first on `sys.meta_path` before the module is imported."""

    def __init__(self, fault: Fault) -> None:
        self._name = fault.module
        self._path = str(ROOT / fault.path)
        self._source = fault.source()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != self._name:
            return None
        return spec_from_file_location(
            fullname,
            self._path,
            loader=_FaultyLoader(fullname, self._path, self._source),
            submodule_search_locations=[str((ROOT / self._path).parent)]
            if self._path.endswith("__init__.py")
            else None,
        )


def install(fault: Fault) -> None:
    """Serve the fault from now on. Raises `RuntimeError` where its module is loaded already."""
    if fault.module in sys.modules:
        raise RuntimeError(f"{fault.module} is imported already: the fault {fault.id} would not be seen")
    sys.meta_path.insert(0, FaultFinder(fault))


def patch(fault: Fault) -> None:
    """Put the fault into the functions of its module as they live in this process: far cheaper than another import.

    Raises RuntimeError where `can_patch` says no.
    """
    found = _replacements(fault)
    if found is None:
        raise RuntimeError(f"the fault {fault.id} is in no function that lives in this process")
    for function, code in found:
        function.__code__ = code


def can_patch(fault: Fault) -> bool:
    """Whether the fault is in functions that live in this process, and takes no variable away from them."""
    return _replacements(fault) is not None


def _replacements(fault: Fault) -> list[tuple[FunctionType, CodeType]] | None:
    path = str(ROOT / fault.path)
    before = compile((ROOT / fault.path).read_bytes(), path, "exec", dont_inherit=True)
    after = compile(fault.source(), path, "exec", dont_inherit=True)
    live = [item for item in gc.get_objects() if isinstance(item, FunctionType) and item.__code__.co_filename == path]
    found: list[tuple[FunctionType, CodeType]] = []
    for old, new in _changed(before, after):
        functions = [function for function in live if function.__code__ == old]
        if not functions or new.co_freevars != old.co_freevars:
            return None
        found += [(function, new) for function in functions]
        # Functions that it has made already, such as registered converters, live on with their own code.
        for inner, changed in _nested(old, new):
            made = [function for function in live if function.__code__ == inner]
            if made and changed.co_freevars != inner.co_freevars:
                return None
            found += [(function, changed) for function in made]
    return found or None


def _changed(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the outermost functions that differ; nothing where more than functions differs."""
    inner = [part for part in before.co_consts if isinstance(part, CodeType)]
    others = [part for part in after.co_consts if isinstance(part, CodeType)]
    if len(inner) != len(others) or _without_code(before) != _without_code(after):
        return
    for old, new in zip(inner, others, strict=True):
        if old != new:
            if old.co_flags & inspect.CO_NEWLOCALS and old.co_flags & inspect.CO_OPTIMIZED:
                yield old, new
            else:
                yield from _changed(old, new)


def _nested(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the functions inside a function that differ, at any depth."""
    inner = [part for part in before.co_consts if isinstance(part, CodeType)]
    others = [part for part in after.co_consts if isinstance(part, CodeType)]
    for old, new in zip(inner, others, strict=False):
        if old != new:
            yield old, new
            yield from _nested(old, new)


def _without_code(code: CodeType) -> tuple[object, ...]:
    constants = [repr(part) for part in code.co_consts if not isinstance(part, CodeType)]
    return code.co_code, code.co_names, tuple(constants)
