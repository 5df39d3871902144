"""Independent references, none of them the code under test, and the extra runs that tolerances are computed from.

In order: onnxruntime without its optimizer (which has wrong fusions); onnxruntime on the float32-widened model, result
rounded; `onnx.reference` on the float64-widened model, whose result is exact beside narrower types (on the model as it
is where widening changes the meaning); a twin, a modern model of the same meaning written from the specification;
expected values that a case brings along.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from onnx import ModelProto

from conformance import onnxruntime_runner, widening
from conformance.comparison import Evidence, Output
from conformance.errors import Unavailable
from conformance.native import Native
from conformance.numerics import Kind, format_of, kind_of
from conformance.tolerance import ToleranceClass
from conformance.widening import FLOAT32, FLOAT64, Transform, Wide


@dataclass(frozen=True, slots=True)
class Question:
    """What oracles are asked: a model, its inputs in order, and where a case has them a twin and expected outputs.

    `crashed` names oracles that took the process down when this question was asked before.
    """

    model: ModelProto | None
    inputs: Sequence[Output]
    twin: tuple[ModelProto, Sequence[Output]] | None = None
    expected: Sequence[Output] | None = None
    crashed: frozenset[str] = field(default_factory=frozenset)
    native: Native | None = None

    def onnx(self) -> ModelProto:
        """The model as ONNX. Raises `Unavailable` where a native program has no such form."""
        if self.model is not None:
            return self.model
        if self.native is None:
            raise Unavailable("the case has no model")
        return self.native.model()

    def types(self) -> list[np.dtype[np.generic] | None]:
        """Element types that the outputs are declared with. Raises `Unavailable`."""
        return widening.output_types(self.onnx()) if self.native is None else self.native.types()


@dataclass(frozen=True, slots=True)
class Answer:
    """One oracle's outputs, or None and why there are none.

    `exact`: in float64 beside a narrower output type; `flushes`: it takes denormals for zero.
    """

    oracle: str
    outputs: Sequence[Output] | None = None
    why: str = ""
    exact: bool = False
    flushes: bool = False

    @property
    def available(self) -> bool:
        """Whether the oracle gave outputs."""
        return self.outputs is not None


ONNXRUNTIME = "onnxruntime"
ONNXRUNTIME_WIDENED = "onnxruntime-widened"
REFERENCE = "reference"
TWIN = "twin"
NATIVE = "native"
NATIVE_WIDENED = "native-widened"
EXPECTED = "expected"


def _run_onnxruntime(question: Question) -> Answer:
    return Answer(ONNXRUNTIME, onnxruntime_runner.run_model(question.onnx(), question.inputs))


def _run_onnxruntime_widened(question: Question) -> Answer:
    types = question.types()
    floats = _float_types(question.onnx(), question.inputs)
    if not any(format_of(dtype).mantissa_bits < 23 for dtype in floats):
        raise Unavailable("the model has no float type narrower than float32")
    outputs = _run_widened_onnxruntime(question, FLOAT32, widening.as_is)
    return Answer(ONNXRUNTIME_WIDENED, [as_declared(o, t) for o, t in zip(outputs, types, strict=True)])


def as_declared(value: Output, dtype: np.dtype[np.generic] | None) -> Output:
    """Return `value` rounded to the element type that the model declares, where it is of the same kind."""
    if isinstance(value, list):
        return [as_declared(part, dtype) for part in value]
    if isinstance(value, np.ndarray) and dtype is not None and kind_of(dtype) is kind_of(value.dtype):
        with np.errstate(over="ignore", invalid="ignore"):
            return value.astype(dtype)
    return value


def _float_types(model: ModelProto, inputs: Sequence[Output]) -> set[np.dtype[np.generic]]:
    types = {value.dtype for value in inputs if isinstance(value, np.ndarray)}
    types |= {dtype for dtype in widening.output_types(model) if dtype is not None}
    return {dtype for dtype in types if kind_of(dtype) is Kind.FLOAT}


def _run_reference(question: Question) -> Answer:
    try:
        model = widening.widen_model(question.onnx(), FLOAT64)
    except Unavailable:
        # The rounding is what the model is about: the evaluator's own is an independent one, though not exact.
        return Answer(REFERENCE, _evaluate(question.onnx(), question.inputs))
    outputs = _evaluate(model, widening.widen_inputs(question.inputs, FLOAT64))
    return Answer(REFERENCE, outputs, exact=_is_exact(question.onnx(), outputs))


def _is_exact(model: ModelProto, outputs: Sequence[Output]) -> bool:
    """Return whether float outputs are in float64 while the model declares narrower ones."""
    declared = {dtype for dtype in widening.output_types(model) if dtype is not None and kind_of(dtype) is Kind.FLOAT}
    found = {
        output.dtype for output in outputs if isinstance(output, np.ndarray) and kind_of(output.dtype) is Kind.FLOAT
    }
    return np.dtype(np.float64) not in declared and found <= {np.dtype(np.float64)}


def _run_native(question: Question) -> Answer:
    if question.native is None:
        raise Unavailable("the case is ONNX's own")
    return Answer(NATIVE, question.native.outputs(), flushes=question.native.flushes)


def _run_native_widened(question: Question) -> Answer:
    if question.native is None:
        raise Unavailable("the case is ONNX's own")
    if not question.native.is_exact():
        raise Unavailable("the outputs have no float type narrower than float64")
    outputs = question.native.outputs(wide=True)
    declared = question.native.types()
    if len(outputs) != len(declared):
        raise Unavailable("the float64 run has another number of outputs")
    floats = {value.dtype for value in outputs if isinstance(value, np.ndarray) and kind_of(value.dtype) is Kind.FLOAT}
    if floats - {np.dtype(np.float64)}:
        raise Unavailable("the float64 run has outputs of a narrower float type")
    kept = [
        value
        if isinstance(value, np.ndarray) and kind_of(value.dtype) in (Kind.FLOAT, Kind.COMPLEX)
        else as_declared(value, dtype)
        for value, dtype in zip(outputs, declared, strict=True)
    ]
    return Answer(NATIVE_WIDENED, kept, exact=True)


def _run_twin(question: Question) -> Answer:
    if question.twin is None:
        raise Unavailable("the case has no twin")
    model, inputs = question.twin
    twin = Question(model, inputs)
    try:
        outputs = _run_widened_reference(twin, widening.as_is)
        return Answer(TWIN, outputs, exact=_is_exact(model, outputs))
    except Unavailable:
        return Answer(TWIN, onnxruntime_runner.run_model(model, inputs))


def _take_expected(question: Question) -> Answer:
    if question.expected is None:
        raise Unavailable("the case brings no expected outputs")
    return Answer(EXPECTED, question.expected)


def _run_widened_onnxruntime(question: Question, wide: Wide, transform: Transform) -> list[Output]:
    model = widening.widen_model(question.onnx(), wide, transform)
    return onnxruntime_runner.run_model(model, widening.widen_inputs(question.inputs, wide, transform))


def _run_widened_reference(question: Question, transform: Transform) -> list[Output]:
    model = widening.widen_model(question.onnx(), FLOAT64, transform)
    return _evaluate(model, widening.widen_inputs(question.inputs, FLOAT64, transform))


def _evaluate(model: ModelProto, inputs: Sequence[Output]) -> list[Output]:
    from onnx.reference import ReferenceEvaluator

    names = onnxruntime_runner.graph_inputs(model)
    if len(names) != len(inputs):
        raise Unavailable(f"the model has {len(names)} inputs, the case {len(inputs)}")
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            # Some of its operators compute in float64 and lose imaginary parts with no more than this warning.
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            outputs = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    except Exception as error:  # a reference in pure Python fails with whatever numpy raises
        raise Unavailable(f"{type(error).__name__}: {onnxruntime_runner.first_line(error)}") from error
    return [_array(output) for output in outputs]


def _array(value: object) -> Output:
    if isinstance(value, list | tuple):
        return [_array(part) for part in value]
    if value is None or isinstance(value, dict):
        return value
    array = np.asarray(value)
    if array.dtype == object:
        for element in array.reshape(-1):
            # Zeros of the reference among strings: no tensor of ONNX can hold both.
            if not isinstance(element, (str, bytes)):
                raise Unavailable(f"a tensor of strings with the {type(element).__name__} {element} in it")
    return array


ORACLES: dict[str, Callable[[Question], Answer]] = {
    ONNXRUNTIME: _run_onnxruntime,
    ONNXRUNTIME_WIDENED: _run_onnxruntime_widened,
    REFERENCE: _run_reference,
    TWIN: _run_twin,
    EXPECTED: _take_expected,
    NATIVE: _run_native,
    NATIVE_WIDENED: _run_native_widened,
}
"""Every oracle by name, in the order in which they are asked."""


def ask(
    question: Question, names: Sequence[str] = tuple(ORACLES), announce: Callable[[str], None] = lambda _: None
) -> list[Answer]:
    """Return the answers of the named oracles; `announce` hears the name of each before it runs."""
    answers = []
    for name in names:
        if name in question.crashed:
            answers.append(Answer(name, why="it took the process down"))
            continue
        announce(name)
        try:
            answers.append(ORACLES[name](question))
        except Unavailable as reason:
            answers.append(Answer(name, why=str(reason)))
    return answers


def gather_evidence(question: Question, tolerance: ToleranceClass, answers: Sequence[Answer]) -> Evidence:
    """Return what `tolerance` needs beyond a reference: runs on absolute values and on ones, another implementation."""
    runs: dict[str, Sequence[Output] | None] = {}
    if tolerance.needs_runs:
        runs["absolute"] = _transformed_run(question, widening.absolute)
        runs["ones"] = _transformed_run(question, widening.ones)
    if tolerance.needs_baseline:
        found = {answer.oracle: answer.outputs for answer in answers if answer.available}
        runs["baseline"] = found.get(ONNXRUNTIME) or found.get(ONNXRUNTIME_WIDENED) or found.get(NATIVE)
        exact = [answer for answer in answers if answer.exact]
        # A twin exists where the reference is known to err.
        runs["exact"] = exact[-1].outputs if exact else None
    return Evidence(inputs=question.inputs, **runs)


def _transformed_run(question: Question, transform: Transform) -> Sequence[Output] | None:
    """Return the run of the model, or of its twin where no oracle runs the model, on transformed data."""
    questions = [question] if question.twin is None else [question, Question(*question.twin)]
    for asked in questions:
        attempts: list[Callable[[], Sequence[Output]]] = [
            *([] if asked.native is None else [partial(asked.native.outputs_on, transform)]),
            partial(_run_widened_reference, asked, transform),
            partial(_run_widened_onnxruntime, asked, FLOAT64, transform),
            partial(_run_widened_onnxruntime, asked, FLOAT32, transform),
        ]
        for attempt in attempts:
            with contextlib.suppress(Unavailable):
                return attempt()
    return None
