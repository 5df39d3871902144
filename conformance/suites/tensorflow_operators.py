"""TensorFlow's raw operators: every case that the manifests under opsets/tensorflow expand to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto

from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.native import Native
from conformance.numerics import Kind, kind_of
from conformance.tensorflow_runtime import first_line, tensorflow
from conformance.widening import Transform, as_is
from generators.tensorflow_build import TensorflowProgram, build_tensorflow
from generators.tensorflow_cases import TensorflowCase, expand_tensorflow, expression_names
from generators.tensorflow_source import render_tensorflow
from opsets.expressions import parse
from opsets.tensorflow_manifest import TensorflowItem, tensorflow_item

FRAMEWORK = "tensorflow"
DOMAIN = "raw_ops"
_HALF = frozenset({"float16", "bfloat16"})
_ROUNDS = "TensorFlow's kernels of 16 bits round after each step, where exact arithmetic is meant and one rounding"
_FLUSHES = "TensorFlow's kernels take denormals for zeros"
_NARROW = frozenset({"float32", *_HALF})


@dataclass(frozen=True, slots=True)
class TensorflowNative(Native):
    """A concrete function, whose float64 run also says more where only its inputs are floats: of comparisons, say."""

    narrow: bool = False

    def is_exact(self) -> bool:
        """Whether some float is narrower than float64 and none is declared to be so wide."""
        return self.narrow


def infos(suite: str) -> Iterator[CaseInfo]:
    """Every case, without importing TensorFlow."""
    for case in expand_tensorflow():
        yield describe(case, suite)


def describe(case: TensorflowCase, suite: str) -> CaseInfo:
    """What collection and records need of a case."""
    return CaseInfo(
        id=case.id,
        suite=suite,
        operator=case.operator,
        framework=FRAMEWORK,
        domain=DOMAIN,
        dtype=case.dtype,
        attributes=dict(case.parameters),
        shapes=case.shapes,
        data_class=case.data_class,
        input_mode=case.mode,
        source=case,
    )


def reproducer(case: TensorflowCase) -> str:
    """Standalone source of a case."""
    return render_tensorflow(case)


def load(case: TensorflowCase) -> LoadedCase:
    """Build and trace a case. Raises `Unavailable` without TensorFlow, and where TensorFlow itself refuses the case."""
    tensorflow()
    program, outputs = _computed(case)
    try:
        traced = program.traced()
    except Exception as error:
        raise Unavailable(f"TensorFlow traces no such program: {type(error).__name__}: {first_line(error)}") from error
    item = tensorflow_item(case.operator)
    native = TensorflowNative(
        traced,
        partial(_eager, case, outputs),
        partial(onnx_of, traced),
        partial(_exact, case),
        flushes=True,
        narrow=case.dtype in _NARROW,
    )
    follows, rule = _ruling(item, case, native)
    return LoadedCase(
        model=None,
        inputs=program.arguments,
        tolerance=str(item.tolerance(case.dtype)),
        ruling=follows,
        rule=None if rule is None else f"{follows}: {rule}",
        native=native,
    )


def _ruling(item: TensorflowItem, case: TensorflowCase, native: Native) -> tuple[str, str | None]:
    """Who has a vote, and why. The exported graph is the work of the code under test: it has a word alone."""
    names = expression_names(item, dict(case.shapes), dict(case.parameters), case.dtype, case.data_class)
    ruling = next((r for r in item.entry.ruling if r.where is None or parse(r.where)(names)), None)
    if ruling is not None:
        return ruling.follows, ruling.rule
    rule = _ROUNDS if case.dtype in _HALF else _FLUSHES if case.data_class == "special" else None
    return ("native-widened", rule) if rule is not None and _has_wide_run(native) else ("native", None)


def _has_wide_run(native: Native) -> bool:
    try:
        return native.is_exact() and not any(
            isinstance(value, np.ndarray) and kind_of(value.dtype) is Kind.FLOAT and value.dtype != np.float64
            for value in native.outputs(wide=True)
        )
    except Unavailable:
        return False


def _computed(case: TensorflowCase) -> tuple[TensorflowProgram, Sequence[Output]]:
    """What TensorFlow computes, operator by operator, or else the graph as a whole: some exist in graphs alone."""
    try:
        program = build_tensorflow(case)
        try:
            return program, program.outputs()
        except Exception:  # noqa: BLE001 - TensorFlow raises whatever it likes; the traced graph has the last word
            return program, program.traced_outputs()
    except Exception as error:
        raise Unavailable(f"TensorFlow computes no such form: {type(error).__name__}: {first_line(error)}") from error


def _eager(case: TensorflowCase, outputs: Sequence[Output], wide: bool) -> Sequence[Output]:
    return _exact(case, as_is) if wide else outputs


def _exact(case: TensorflowCase, transform: Transform) -> Sequence[Output]:
    if not tensorflow_item(case.operator).entry.wide:
        raise Unavailable("in float64 the program would mean something else")
    return build_tensorflow(case, wide=True, transform=transform).outputs()


def onnx_of(traced: Any) -> ModelProto:  # noqa: ANN401 - a concrete function
    """The graph as the compiler imports it, written back to ONNX. Raises `Unavailable` where it has no such form."""
    from compiler.errors import OpatlasError
    from compiler.exporters.onnx import export_model
    from compiler.frontends.tensorflow import import_tensorflow

    try:
        return export_model(import_tensorflow(traced))
    except OpatlasError as error:
        raise Unavailable(f"the graph has no ONNX form: {error.message}") from error
