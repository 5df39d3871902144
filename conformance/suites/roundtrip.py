"""Round trips: graphs of the other suites written back to ONNX at several operator sets, and run by onnxruntime there.

A case is one graph at one operator set. Of each operator of each framework, version by version, the case whose id has
the least hash is taken, and all whole models: a choice that new cases elsewhere hardly change. The result is held
against onnxruntime on the model as it was, or the framework itself; or what the manifest rules where that errs. What
an operator set cannot say is `unsupported` with the diagnosis UnsupportedByOpset, which needs no expectation; what
onnxruntime has no kernel for at that operator set, `unverified`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Final

import onnx
from onnx import ModelProto

from conformance import onnxruntime_runner
from conformance.case import CaseInfo, LoadedCase, Suite
from conformance.comparison import Output
from conformance.errors import Unavailable

_FROM: Final = ("operators", "graphs", "models")
_OPSETS: Final = (13, 17, 21)
_LIMITATION: Final = re.compile(
    "Could not find an implementation|Failed to find kernel|is not a registered function/op|not supported|"
    "does not support|only supports|not currently registered or supported|is not defined for empty set"
)
"""What onnxruntime says of an operator, a type or an attribute that it lacks, as against a model that is wrong."""
_SEED: Final = b"round trip"


@dataclass(frozen=True, slots=True)
class _Source:
    """A case of another suite, and the operator set that its graph is written at."""

    suite: str
    info: CaseInfo
    opset: int


@dataclass(slots=True)
class RoundTrip:
    """The program of a case: imported, written at the operator set, accepted by ONNX's checker, run by onnxruntime."""

    model: object
    opset: int
    _exported: ModelProto | None = field(default=None)

    def run(self, inputs: Sequence[Output]) -> Sequence[Output]:
        """The outputs. Raises UnsupportedByOpset, Unavailable where onnxruntime has no kernel for a node."""
        from compiler import api
        from compiler.exporters.onnx import export_model

        compiled: Any = api.compile(self.model)
        exported = export_model(compiled.imported(inputs), self.opset)
        onnx.checker.check_model(exported, full_check=True)
        try:
            return onnxruntime_runner.run_model(exported, inputs)
        except Unavailable as reason:
            if _LIMITATION.search(str(reason)):
                raise
            raise RuntimeError(f"onnxruntime on the exported model: {reason}") from reason


class RoundTrips:
    """Cases by the id of the original and the operator set."""

    name: ClassVar[str] = "roundtrip"
    time_limit: ClassVar[float] = 120.0

    def prepare(self, say: Callable[[str], None]) -> None:
        _suite("models").prepare(say)

    def cases(self) -> Iterator[CaseInfo]:
        newest = onnx.defs.onnx_opset_version()
        for suite, info in _chosen():
            for opset in (*(number for number in _OPSETS if number < newest), newest):
                yield replace(
                    info,
                    id=f"{self.name}/{info.id}@{opset}",
                    suite=self.name,
                    source=_Source(suite, info, opset),
                    refusals=frozenset({"UnsupportedByOpset"}),
                )

    def load(self, info: CaseInfo) -> LoadedCase:
        source = _source(info)
        case = _suite(source.suite).load(source.info)
        model = case.model if case.native is None else case.native.program
        original = "onnxruntime" if case.native is None else "native"
        return replace(case, program=RoundTrip(model, source.opset), original=original)

    def reproducer(self, info: CaseInfo) -> str | None:
        source = _source(info)
        return _suite(source.suite).reproducer(source.info)


@cache
def _suite(name: str) -> Suite:
    from conformance.suites import make_suite

    return make_suite(name)


def _source(info: CaseInfo) -> _Source:
    if not isinstance(info.source, _Source):
        raise TypeError(f"{info.id}: found a source of {type(info.source).__name__}, expected a case of another suite")
    return info.source


def _chosen() -> Iterator[tuple[str, CaseInfo]]:
    """Whole models, and the case of least hash of each operator's version; names of graphs count as operators."""
    for name in _FROM:
        least: dict[tuple[object, ...], tuple[bytes, CaseInfo]] = {}
        for info in _suite(name).cases():
            key = (info.framework, info.domain, info.operator, info.since_version, info.id if name == "models" else "")
            mark = hashlib.blake2b(info.id.encode(), digest_size=8, key=_SEED).digest()
            if key not in least or mark < least[key][0]:
                least[key] = (mark, info)
        for _, info in least.values():
            yield name, info


def create() -> RoundTrips:
    """Return the suite."""
    return RoundTrips()
