"""Signatures of TensorFlow's raw operators, kept in a file: neither listing cases nor a coverage matrix imports it.

``python -m opsets.tensorflow_schema`` writes the file anew from the TensorFlow that is installed.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from opsets.elements import ELEMENTS, rank_of
from opsets.errors import ManifestError

PATH: Final = Path(__file__).parent / "tensorflow" / "schema.json"
VERSION: Final = "2.21"
"""The release whose operators the file holds."""

_SPELLING: Final[Mapping[str, str]] = {
    "half": "float16",
    "float8_e4m3fn": "float8e4m3fn",
    "float8_e4m3fnuz": "float8e4m3fnuz",
    "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz",
}
"""TensorFlow's names of element types, where they differ from ours."""

Count = Literal["one", "several", "typed"]
"""How many tensors an argument is: one, a list of one type, or a list with a type for each."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One input or output: its element type, or the name of the attribute that holds it."""

    name: str
    type: str
    count: Count = "one"


@dataclass(frozen=True, slots=True)
class RawOperator:
    """What TensorFlow's own definition says: arguments, attributes and their kinds, element types by attribute.

    ``types`` are those that the definition allows and the compiler's IR has; ``kernels`` those of them that TensorFlow
    computes on a CPU; ``defaults`` the type that an attribute has when it is left out.
    """

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    attributes: Mapping[str, str]
    types: Mapping[str, tuple[str, ...]]
    kernels: Mapping[str, tuple[str, ...]]
    defaults: Mapping[str, str]

    def input(self, name: str) -> Argument | None:
        """The input of that name, or None."""
        return next((argument for argument in self.inputs if argument.name == name), None)

    @property
    def main_type(self) -> str | None:
        """The attribute whose type a case is about: that of the first input which has one, else the first there is."""
        of_inputs = (argument.type for argument in self.inputs if argument.type in self.types)
        return next(of_inputs, next(iter(self.types), None))


@cache
def raw_schema() -> Mapping[str, RawOperator]:
    """Every operator of the file, by name."""
    return {name: _parsed(name, body) for name, body in json.loads(PATH.read_text(encoding="utf-8")).items()}


def raw_operator(name: str) -> RawOperator:
    """The operator of that name. Raises ManifestError."""
    found = raw_schema().get(name)
    if found is None:
        raise ManifestError(f"{PATH}: found no operator '{name}', expected a raw operator that the file holds")
    return found


def _parsed(name: str, body: Mapping[str, Any]) -> RawOperator:
    return RawOperator(
        name,
        tuple(Argument(*argument) for argument in body["inputs"]),
        tuple(Argument(*argument) for argument in body["outputs"]),
        body["attributes"],
        {attribute: tuple(types) for attribute, types in body["types"].items()},
        {attribute: tuple(types) for attribute, types in body["kernels"].items()},
        body["defaults"],
    )


def installed_names() -> tuple[str, ...]:
    """Names of all raw operators of the TensorFlow that is installed. Raises ImportError without one."""
    import tensorflow as tf

    return tuple(name for name in dir(tf.raw_ops) if not name.startswith("_"))


def installed(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The operators as the installed TensorFlow defines them, as plain data. Raises ImportError without one."""
    from tensorflow.python.framework import op_def_registry

    found = {}
    for name in names:
        definition = op_def_registry.get(name)
        types = {a.name: _elements(_allowed(a)) for a in definition.attr if a.type in {"type", "list(type)"}}
        spelled = _renamed(definition)
        found[name] = {
            "inputs": [_argument(argument, spelled) for argument in definition.input_arg],
            "outputs": [_argument(argument, {}) for argument in definition.output_arg],
            "attributes": {spelled.get(a.name, a.name): a.type for a in definition.attr},
            "types": types,
            "kernels": _kernels(name, types),
            "defaults": {
                a.name: _spelled(a.default_value.type)
                for a in definition.attr
                if a.type == "type" and a.HasField("default_value")
            },
        }
    return found


def _renamed(definition: Any) -> dict[str, str]:  # noqa: ANN401 - a message of protobuf
    """What `tf.raw_ops` calls arguments that the definition calls otherwise: `axis` for `reduction_indices`."""
    import tensorflow as tf

    followed = {name for a in definition.input_arg for name in (a.type_attr, a.number_attr, a.type_list_attr)}
    defined = [a.name for a in (*definition.input_arg, *definition.attr) if a.name not in followed]
    taken = [name for name in inspect.signature(getattr(tf.raw_ops, definition.name)).parameters if name != "name"]
    left = [name for name in taken if name not in defined]
    return dict(zip([name for name in defined if name not in taken], left, strict=True))


def _argument(argument: Any, spelled: Mapping[str, str]) -> list[str]:  # noqa: ANN401 - a message of protobuf
    name = spelled.get(argument.name, argument.name)
    if argument.type_list_attr:
        return [name, argument.type_list_attr, "typed"]
    return [name, argument.type_attr or _spelled(argument.type), "several" if argument.number_attr else "one"]


def _spelled(number: int) -> str:
    import tensorflow as tf

    name = tf.dtypes.as_dtype(number).name
    return _SPELLING.get(name, name)


def _all_types() -> list[int]:
    from tensorflow.core.framework import types_pb2

    return [number for name, number in types_pb2.DataType.items() if "_REF" not in name and number]


def _allowed(attribute: Any) -> list[int]:  # noqa: ANN401 - a message of protobuf
    return list(attribute.allowed_values.list.type) if attribute.HasField("allowed_values") else _all_types()


def _elements(numbers: Iterable[int]) -> list[str]:
    """Names of the types that our elements have, in the order of the elements."""
    names = set()
    for number in numbers:
        try:
            names.add(_spelled(number))
        except (TypeError, KeyError):
            continue
    return sorted(names & set(ELEMENTS), key=rank_of)


def _kernels(name: str, types: Mapping[str, list[str]]) -> dict[str, list[str]]:
    from tensorflow.python.framework import kernels

    found: dict[str, set[str]] = {attribute: set() for attribute in types}
    for kernel in kernels.get_registered_kernels_for_op(name).kernel:
        if kernel.device_type in {"CPU", "DEFAULT"}:
            constraints = {c.name: _elements(c.allowed_values.list.type) for c in kernel.constraint}
            for attribute, allowed in types.items():
                found[attribute] |= set(constraints.get(attribute, allowed))
    return {
        attribute: [element for element in allowed if element in found[attribute]]
        for attribute, allowed in types.items()
    }


def _text(operators: Mapping[str, Any]) -> str:
    lines = [f"{json.dumps(name)}: {json.dumps(body)}" for name, body in sorted(operators.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """Write the file for the operators that manifests have."""
    from opsets.tensorflow_manifest import named_operators

    PATH.write_text(_text(installed(named_operators())), encoding="utf-8")


if __name__ == "__main__":
    main()
