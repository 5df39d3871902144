"""ONNX's backend interface over the compiler, for ONNX's own test runner and everything that speaks it.

Models run on the simulated accelerator. Refusals stay OpatlasErrors: ONNX's runner takes its own exception for models
that a backend need not implement as a pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from compiler.api import Options, compile
from compiler.errors import InvalidInput, InvalidTarget
from compiler.ir import type_of
from compiler.onnx_types import type_proto
from compiler.targets.loader import DEFAULT_TARGET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from compiler.api import CompiledModel, SimulationResult
    from compiler.targets.schema import Target

_DEVICE: Final = "CPU"
"""The only device of ONNX's list: the accelerator is simulated on it. Which accelerator is the keyword ``target``."""


class PreparedModel(BackendRep):
    """A compiled model. ``report`` has cycles, placement and all other costs of the last run; None before the first."""

    def __init__(self, compiled: CompiledModel) -> None:
        super().__init__()
        self.compiled = compiled
        self.report: SimulationResult | None = None

    def run(self, inputs: Sequence[Any] | Mapping[str, Any], **_kwargs: Any) -> tuple[Any, ...]:  # noqa: ANN401
        """The outputs in order, for inputs in order or by name. Raises an OpatlasError with its ``stage``."""
        if hasattr(inputs, "keys"):
            given: Any = {name: _plain(value) for name, value in dict(inputs).items()}
        elif isinstance(inputs, (list, tuple)):
            given = [_plain(value) for value in inputs]
        else:
            given = [_plain(inputs)]
        self.report = self.compiled.simulate(given)
        outputs = self.report.outputs
        assert outputs is not None
        return tuple(outputs)


def _plain(value: Any) -> Any:  # noqa: ANN401 - arrays, scalars, lists, None
    """Arrays as the compiler takes them: strings as objects, scalars as arrays of rank 0."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None:
        return None
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "US" else array


class OpatlasBackend(Backend):
    """Compiles ONNX models for a simulated accelerator, the keyword ``target``: a name, a path or a Target."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether ``prepare`` takes the device: the CPU, on which accelerators are simulated."""
        return device.partition(":")[0] == _DEVICE

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = _DEVICE, **kwargs: Any) -> bool:  # noqa: ANN401, ARG003
        """Every model may be tried: what is not supported is refused with its reason, not left out."""
        return cls.supports_device(device)

    @classmethod
    def prepare(
        cls,
        model: onnx.ModelProto | str | Path,
        device: str = _DEVICE,
        *,
        target: str | Path | Target = DEFAULT_TARGET,
        options: Options | None = None,
        **_kwargs: Any,  # noqa: ANN401 - the interface
    ) -> PreparedModel:
        """Import and verify a model. Raises an OpatlasError whose ``stage`` is import or verify, InvalidTarget."""
        if not cls.supports_device(device):
            raise InvalidTarget(f"device '{device}' is unknown; expected {_DEVICE} (and target= for the accelerator)")
        return PreparedModel(compile(model, target, options=options))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = _DEVICE, **kwargs: Any) -> tuple[Any, ...]:  # noqa: ANN401
        """Prepare and run a model once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Sequence[Any] | Mapping[str, Any],
        device: str = _DEVICE,
        outputs_info: Sequence[tuple[Any, Any]] | None = None,  # noqa: ARG003 - types are inferred
        **kwargs: Any,  # noqa: ANN401 - the interface
    ) -> tuple[Any, ...]:
        """Run a model of one node; ``opset_version`` is the operator set of its domain, by default the newest.

        Raises InvalidInput where the number of inputs is not that of the node's named inputs.
        """
        version = kwargs.pop("opset_version", None)
        names = list(dict.fromkeys(name for name in node.input if name))
        given = [inputs[name] for name in names] if hasattr(inputs, "keys") else list(inputs)
        if len(given) != len(names):
            raise InvalidInput(f"{len(given)} inputs given; the node has {len(names)}: {names}")
        arrays = [_plain(value) for value in given]
        return cls.run_model(_node_model(node, names, arrays, version), arrays, device, **kwargs)


def _node_model(
    node: onnx.NodeProto, names: Sequence[str], arrays: Sequence[Any], version: int | None
) -> onnx.ModelProto:
    infos = [
        onnx.helper.make_value_info(name, type_proto(type_of(np.asarray(array))))
        for name, array in zip(names, arrays, strict=True)
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    newest = onnx.defs.onnx_opset_version()
    imports = [onnx.helper.make_opsetid("", newest if node.domain or version is None else version)]
    if node.domain:
        imports.append(onnx.helper.make_opsetid(node.domain, version or 1))
    graph = onnx.helper.make_graph([node], node.op_type, infos, outputs)
    return onnx.helper.make_model(graph, opset_imports=imports)


prepare = OpatlasBackend.prepare
run_model = OpatlasBackend.run_model
run_node = OpatlasBackend.run_node
supports_device = OpatlasBackend.supports_device
is_compatible = OpatlasBackend.is_compatible
