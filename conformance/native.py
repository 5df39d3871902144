"""Cases that are a framework's own program: what the backend compiles, and what the framework itself makes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto

from conformance.comparison import Output
from conformance.errors import Unavailable
from conformance.numerics import Kind, kind_of
from conformance.widening import Transform


@dataclass(frozen=True, slots=True)
class Native:
    """A program of a framework other than ONNX.

    ``program`` is what the backend gets; ``eager(wide)`` runs the framework's own interpreter on the inputs, in float64
    where ``wide``; ``export()`` is the graph written back to ONNX, for oracles that read ONNX; ``transformed(f)`` is
    the float64 run on data that f changed, where the framework makes it: else the exported graph does.
    ``flushes`` says that the framework takes denormals for zero. ``inputs``
    are example inputs where the program is not traced yet.
    """

    program: Any
    eager: Callable[[bool], Sequence[Output]]
    export: Callable[[], ModelProto]
    transformed: Callable[[Transform], Sequence[Output]] | None = None
    flushes: bool = False
    inputs: Sequence[Any] | None = None
    _known: dict[str, Any] = field(default_factory=dict)

    def outputs(self, *, wide: bool = False) -> Sequence[Output]:
        """What the framework gives. Raises Unavailable with its reason."""
        return self._once(f"eager {wide}", lambda: self.eager(wide))  # type: ignore[no-any-return] # what it was given

    def model(self) -> ModelProto:
        """The graph as ONNX. Raises Unavailable where some operation has no ONNX form."""
        return self._once("model", self.export)  # type: ignore[no-any-return]

    def types(self) -> list[np.dtype[np.generic] | None]:
        """Element types of the outputs."""
        return [output.dtype if isinstance(output, np.ndarray) else None for output in self.outputs()]

    def outputs_on(self, transform: Transform) -> Sequence[Output]:
        """The float64 run on changed data. Raises Unavailable where the framework does not make it."""
        if self.transformed is None:
            raise Unavailable("the framework runs the case on its own data alone")
        make = self.transformed
        return self._once(f"on {transform.__name__}", lambda: make(transform))  # type: ignore[no-any-return]

    def operators(self) -> tuple[str, ...]:
        """The framework's own operators in the program, such as ``add.Tensor``; none where it does not name them."""
        nodes = getattr(getattr(self.program, "graph", None), "nodes", ())
        schemas = (getattr(getattr(node, "target", None), "_schema", None) for node in nodes)
        pairs = ((one.name.rpartition("::")[2], one.overload_name or "default") for one in schemas if one is not None)
        return tuple(dict.fromkeys(f"{name}.{overload}" for name, overload in pairs))

    def is_exact(self) -> bool:
        """Whether the float64 run carries more than the result's own type does."""
        floats = {t for t in self.types() if t is not None and kind_of(t) in (Kind.FLOAT, Kind.COMPLEX)}
        return bool(floats) and floats.isdisjoint({np.dtype(np.float64), np.dtype(np.complex128)})

    def _once(self, key: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever `make` gives
        if key not in self._known:
            try:
                self._known[key] = make()
            except Unavailable as reason:
                self._known[key] = reason
            except Exception as error:  # noqa: BLE001 - a framework fails with whatever it likes; it has no answer then
                lines = str(error).strip().splitlines()
                self._known[key] = Unavailable(f"{type(error).__name__}: {lines[0] if lines else ''}"[:300])
        found = self._known[key]
        if isinstance(found, Unavailable):
            raise found
        return found
