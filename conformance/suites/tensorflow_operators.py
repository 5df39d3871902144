"""TensorFlow's raw operators: every case that the manifests under opsets/tensorflow expand to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from onnx import ModelProto

from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.native import Native
from conformance.tensorflow_runtime import first_line, tensorflow
from conformance.widening import Transform, as_is
from generators.tensorflow_build import TensorflowProgram, build_tensorflow
from generators.tensorflow_cases import TensorflowCase, expand_tensorflow
from generators.tensorflow_source import render_tensorflow
from opsets.tensorflow_manifest import tensorflow_item

FRAMEWORK = "tensorflow"
DOMAIN = "raw_ops"


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
    program = build_tensorflow(case)
    outputs = _computed(program)
    try:
        traced = program.traced()
    except Exception as error:
        raise Unavailable(f"TensorFlow traces no such program: {type(error).__name__}: {first_line(error)}") from error
    item = tensorflow_item(case.operator)
    native = Native(traced, partial(_eager, case, outputs), partial(onnx_of, traced), partial(_exact, case))
    ruling = item.entry.ruling
    return LoadedCase(
        model=None,
        inputs=program.arguments,
        tolerance=str(item.tolerance(case.dtype)),
        # The exported graph is the work of the code under test: it has a word, but no vote.
        ruling="native" if ruling is None else ruling.follows,
        rule=None if ruling is None else f"{ruling.follows}: {ruling.rule}",
        native=native,
    )


def _computed(program: TensorflowProgram) -> Sequence[Output]:
    """What TensorFlow computes, operator by operator, or else the graph as a whole: some exist in graphs alone."""
    try:
        return program.outputs()
    except Exception:  # noqa: BLE001 - TensorFlow raises whatever it likes; the traced graph has the last word
        try:
            return program.traced_outputs()
        except Exception as error:
            raise Unavailable(
                f"TensorFlow computes no such form: {type(error).__name__}: {first_line(error)}"
            ) from error


def _eager(case: TensorflowCase, outputs: Sequence[Output], wide: bool) -> Sequence[Output]:
    return _exact(case, as_is) if wide else outputs


def _exact(case: TensorflowCase, transform: Transform) -> Sequence[Output]:
    if not tensorflow_item(case.operator).entry.wide:
        raise Unavailable("in float64 the program would mean something else")
    return build_tensorflow(case, wide=True, transform=transform).outputs()


def onnx_of(traced: Any) -> ModelProto:  # noqa: ANN401 - a concrete function
    """The graph as the compiler imports it, written back to ONNX. Raises `Unavailable` where it has no such form."""
    from compiler.frontends.tensorflow import import_tensorflow

    from compiler.errors import OpatlasError
    from compiler.exporters.onnx import export_model

    try:
        return export_model(import_tensorflow(traced))
    except OpatlasError as error:
        raise Unavailable(f"the graph has no ONNX form: {error.message}") from error
