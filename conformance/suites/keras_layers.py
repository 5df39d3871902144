"""Keras 3 on TensorFlow: layers with their options, and the networks of keras.applications with random weights.

Each is a traced function, held against Keras itself in its own types and in float64, within the whole-graph class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import ClassVar

from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.native import Native
from conformance.suites.tensorflow_operators import FRAMEWORK, onnx_of
from conformance.tensorflow_runtime import first_line, tensorflow
from generators.keras_cases import KerasCase, build_keras, expand_keras, input_shapes, keras_entry, render_keras
from opsets.keras_manifest import KINDS, load_keras_manifest


class KerasLayers:
    """Cases by option of a layer. An id holds the option, so loading starts from the description alone."""

    name: ClassVar[str] = "keras"
    time_limit: ClassVar[float] = 900.0

    def prepare(self, say: Callable[[str], None]) -> None:
        del say

    def cases(self) -> Iterator[CaseInfo]:
        for case in expand_keras():
            yield CaseInfo(
                id=case.id,
                suite=self.name,
                operator=case.name,
                framework=FRAMEWORK,
                domain=f"keras.{case.kind}",
                dtype=case.dtype,
                attributes={"option": case.option},
                shapes=input_shapes(case),
                data_class="random",
                input_mode=case.mode,
                source=case,
            )

    def load(self, info: CaseInfo) -> LoadedCase:
        case = info.source
        if not isinstance(case, KerasCase):
            raise TypeError(f"{info.id}: found a source of {type(case).__name__}, expected a KerasCase")
        tensorflow()
        try:
            program = build_keras(case)
            outputs = program.traced_outputs()
        except ImportError as error:
            raise Unavailable(f"Keras is not installed ({error}); pip install 'opatlas[tensorflow]'") from error
        except Exception as error:
            raise Unavailable(f"Keras has no such form: {type(error).__name__}: {first_line(error)}") from error
        traced = program.traced()
        native = Native(traced, partial(_eager, case, outputs), partial(onnx_of, traced), flushes=True)
        return LoadedCase(
            model=None,
            inputs=program.arguments,
            tolerance=keras_entry(case).tolerance,
            ruling="native",
            rule="native: the exported graph is the work of the code under test",
            native=native,
        )

    def reproducer(self, info: CaseInfo) -> str | None:
        return render_keras(info.source) if isinstance(info.source, KerasCase) else None


def _eager(case: KerasCase, outputs: Sequence[Output], wide: bool) -> Sequence[Output]:
    return build_keras(case, wide=True).outputs() if wide else outputs


def create() -> KerasLayers:
    """Return the suite. Raises `ManifestError` for a manifest that breaks its schema."""
    for kind in KINDS:
        load_keras_manifest(kind)
    return KerasLayers()
