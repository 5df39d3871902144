"""Rules that a schema sets for a node, and for each the smallest change that breaks it in a valid model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from opsets import Item, ManifestError
from opsets.signature import Attribute, Parameter, Signature, onnx_versions

_UNLIMITED = 2**31 - 1
_UNKNOWN = "no_such_attribute"
_AXES = frozenset({"axis", "batch_axis", "time_axis"})
"""Integer attributes that number a dimension of an input."""
_AXIS_IGNORED = frozenset({"QuantizeLinear", "DequantizeLinear"})
"""Operators that ignore their axis where the scale stands for the whole tensor, as in their first case."""
_FREE_TEXT = frozenset({"default_string", "delimiter", "dtype", "equation", "locale", "pattern", "to", "value_string"})
"""Texts that are no choice from a list."""
_ELEMENT_NUMBERS = {
    name.lower(): number for name, number in TensorProto.DataType.items() if number != TensorProto.UNDEFINED
} | {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}


@dataclass(frozen=True, slots=True)
class Subject:
    """An operator version that is to be broken, with its later and earlier versions."""

    signature: Signature
    versions: tuple[Signature, ...]
    newest: bool
    template: str

    @classmethod
    def of(cls, item: Item) -> Subject:
        """The operator version of a manifest item."""
        return cls(item.signature, onnx_versions()[item.domain, item.operator], item.newest, item.entry.template)

    def node(self, model: ModelProto) -> NodeProto:
        """The node of the operator in a model.

        :raises ManifestError: if the model has none.
        """
        nodes: list[NodeProto] = list(model.graph.node)
        for node in nodes:
            if node.op_type == self.signature.operator:
                return node
        raise ManifestError(f"{self.signature.operator}-{self.signature.since_version}: found no node of it to break")

    @property
    def plain(self) -> tuple[tuple[int, Parameter], ...]:
        """Inputs that are always given and always a tensor, with their place."""
        return tuple(
            (at, one) for at, one in enumerate(self.signature.inputs)
            if one.kind == "tensor" and not one.optional
        )  # fmt: skip

    @property
    def following(self) -> Signature | None:
        """The next version that is not deprecated."""
        later = (one for one in self.versions if one.since_version > self.signature.since_version)
        return next((one for one in later if not one.deprecated), None)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the specification, and how a valid model comes to break it."""

    statement: str
    diagnosis: str
    applies: Callable[[Subject], bool]
    break_: Callable[[ModelProto, Subject], None]


def _add_attribute(model: ModelProto, subject: Subject) -> None:
    subject.node(model).attribute.append(helper.make_attribute(_UNKNOWN, 1))


def _first_attribute(signature: Signature) -> Attribute | None:
    return next((one for one in signature.attributes.values() if one.kind in _WRONG_VALUE), None)


_WRONG_VALUE: Mapping[str, Any] = {
    "INT": "text",
    "FLOAT": [1.0, 2.0],
    "STRING": 3,
    "INTS": 0.5,
    "FLOATS": "text",
    "STRINGS": 1,
    "TENSOR": 1,
    "GRAPH": 1.5,
}
"""A value of another kind, by the kind that the schema wants."""


def _set_attribute(node: NodeProto, name: str, value: object) -> None:
    kept = [one for one in node.attribute if one.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])


def _mistype_attribute(model: ModelProto, subject: Subject) -> None:
    found = _first_attribute(subject.signature)
    if found is not None:
        _set_attribute(subject.node(model), found.name, _WRONG_VALUE[found.kind])


def _required(signature: Signature) -> list[str]:
    return [name for name, one in signature.attributes.items() if one.required]


def _drop_attribute(model: ModelProto, subject: Subject) -> None:
    node = subject.node(model)
    name = _required(subject.signature)[0]
    kept = [one for one in node.attribute if one.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)


def _later_attributes(subject: Subject) -> list[Attribute]:
    following = subject.following
    if following is None:
        return []
    known = subject.signature.attributes
    return [one for name, one in following.attributes.items() if name not in known and one.kind in _SOME_VALUE]


_SOME_VALUE: Mapping[str, Any] = {"INT": 1, "FLOAT": 1.0, "STRING": "text", "INTS": [1], "FLOATS": [1.0]}


def _set_later_attribute(model: ModelProto, subject: Subject) -> None:
    found = _later_attributes(subject)[0]
    _set_attribute(subject.node(model), found.name, _SOME_VALUE[found.kind])


def _choices(signature: Signature) -> list[str]:
    return [name for name, one in signature.attributes.items() if one.kind == "STRING" and name not in _FREE_TEXT]


def _choose_nonsense(model: ModelProto, subject: Subject, place: int) -> None:
    _set_attribute(subject.node(model), _choices(subject.signature)[place], "no_such_choice")


def _axis_names(signature: Signature) -> list[str]:
    if signature.operator in _AXIS_IGNORED:
        return []
    return [name for name, one in signature.attributes.items() if one.kind == "INT" and name in _AXES]


def _move_axis(model: ModelProto, subject: Subject, axis: int) -> None:
    _set_attribute(subject.node(model), _axis_names(subject.signature)[0], axis)


def _drop_input(model: ModelProto, subject: Subject) -> None:
    node = subject.node(model)
    del node.input[_least_inputs(subject.signature) - 1 :]


@cache
def _schema(domain: str, operator: str, since: int) -> onnx.defs.OpSchema:
    return onnx.defs.get_schema(operator, since, "" if domain == "ai.onnx" else domain)


def _of(signature: Signature) -> onnx.defs.OpSchema:
    return _schema(signature.domain, signature.operator, signature.since_version)


def _least_inputs(signature: Signature) -> int:
    return int(_of(signature).min_input)


def _most_inputs(signature: Signature) -> int:
    return int(_of(signature).max_input)


def _blank_input(model: ModelProto, subject: Subject) -> None:
    subject.node(model).input[subject.plain[0][0]] = ""


def _add_inputs(model: ModelProto, subject: Subject) -> None:
    node = subject.node(model)
    name = next((one for one in node.input if one), None)
    if name is None:
        name = "one_more"
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]))
    node.input.extend([""] * (_most_inputs(subject.signature) - len(node.input)) + [name])


def _add_outputs(model: ModelProto, subject: Subject) -> None:
    node = subject.node(model)
    missing = subject.signature.max_outputs + 1 - len(node.output)
    node.output.extend(f"one_more_{index}" for index in range(missing))


def _drop_outputs(model: ModelProto, subject: Subject) -> None:
    node = subject.node(model)
    kept = list(node.output)[: subject.signature.min_outputs - 1]
    del node.output[:]
    node.output.extend(kept)
    outputs = [one for one in model.graph.output if one.name in kept]
    del model.graph.output[:]
    model.graph.output.extend(outputs)


def _declared(model: ModelProto, name: str) -> ValueInfoProto | None:
    return next((one for one in model.graph.input if one.name == name and one.type.HasField("tensor_type")), None)


def _set_element(model: ModelProto, name: str, number: int) -> None:
    """Give a graph input another element type."""
    for value in model.graph.input:
        if value.name == name:
            value.type.tensor_type.elem_type = number


def _numbers(elements: tuple[str, ...]) -> set[int]:
    return {_ELEMENT_NUMBERS[name] for name in elements if name in _ELEMENT_NUMBERS}


_PROBES = (
    TensorProto.STRING, TensorProto.BOOL, TensorProto.COMPLEX64, TensorProto.FLOAT, TensorProto.INT64,
    TensorProto.UINT8,
)  # fmt: skip


def _foreign(formal: Parameter) -> list[int]:
    allowed = _numbers(formal.elements)
    return [number for number in _PROBES if number not in allowed]


def _mistype_input(model: ModelProto, subject: Subject) -> None:
    node = subject.node(model)
    for at, formal in _mistypable(subject):
        if at < len(node.input) and _declared(model, node.input[at]) is not None:
            _set_element(model, node.input[at], _foreign(formal)[0])
            return
    raise ManifestError(f"{subject.signature.operator}: found no graph input to give another type")


def _mistypable(subject: Subject) -> list[tuple[int, Parameter]]:
    return [(at, one) for at, one in subject.plain if _foreign(one) and subject.template == "node"]


def _later_types(subject: Subject) -> list[tuple[int, str]]:
    """(place of an input, element type) that the next version allows and this one does not."""
    following = subject.following
    if following is None or subject.template != "node":
        return []
    found = []
    for at, formal in subject.plain:
        if at < len(following.inputs) and formal.type_name is not None:
            later = [one for one in following.inputs[at].elements if one not in formal.elements]
            found += [(at, one) for one in later if one in _ELEMENT_NUMBERS][:1]
    return found


def _set_later_type(model: ModelProto, subject: Subject) -> None:
    at, element = _later_types(subject)[0]
    node = subject.node(model)
    shared = subject.signature.inputs[at].type_name
    for place, formal in enumerate(subject.signature.inputs):
        if formal.type_name == shared and place < len(node.input):
            names = list(node.input)[place:] if formal.variadic else [node.input[place]]
            for name in names:
                _set_element(model, name, _ELEMENT_NUMBERS[element])


def _pairs(subject: Subject) -> list[tuple[int, int]]:
    """Places of two inputs that must have one type, which may be one of several."""
    found = []
    for at, one in subject.plain:
        for later, other in subject.plain:
            same = one.type_name is not None and one.type_name == other.type_name
            if at < later and same and len(one.elements) > 1 and subject.template == "node":
                found.append((at, later))
    return found


def _mix_types(model: ModelProto, subject: Subject) -> None:
    node = subject.node(model)
    for _, at in _pairs(subject):
        value = _declared(model, node.input[at]) if at < len(node.input) else None
        if value is not None:
            allowed = _numbers(subject.signature.inputs[at].elements) - {value.type.tensor_type.elem_type}
            _set_element(model, value.name, min(allowed))
            return
    raise ManifestError(f"{subject.signature.operator}: found no pair of inputs to give two types")


def _tensor_outputs(subject: Subject) -> bool:
    return subject.template == "node" and any(one.kind == "tensor" for one in subject.signature.outputs[:1])


def _mistype_output(model: ModelProto, subject: Subject) -> None:
    del subject
    kind = model.graph.output[0].type.tensor_type
    kind.elem_type = next(number for number in (TensorProto.INT16, TensorProto.FLOAT) if number != kind.elem_type)


def _rerank_output(model: ModelProto, subject: Subject) -> None:
    del subject
    kind = model.graph.output[0].type.tensor_type
    if not kind.HasField("shape"):
        raise ManifestError(f"{model.graph.name}: found an output without a shape")
    for size in (1, 1):
        kind.shape.dim.add().dim_value = size


def _step_back(model: ModelProto, subject: Subject) -> None:
    model.opset_import[0].version = subject.versions[0].since_version - 1


def _gone(subject: Subject) -> Signature | None:
    """The version that took the operator out, if the next one did."""
    later = [one for one in subject.versions if one.since_version > subject.signature.since_version]
    return later[0] if later and later[0].deprecated else None


def _step_forward(model: ModelProto, subject: Subject) -> None:
    found = _gone(subject)
    if found is not None:
        model.opset_import[0].version = found.since_version


def _is_oldest(subject: Subject) -> bool:
    return subject.signature.since_version == subject.versions[0].since_version


RULES: Mapping[str, Rule] = {
    "attribute-unknown": Rule(
        "a node has no attribute that its operator's version does not name",
        "InvalidAttribute", lambda s: s.newest, _add_attribute,
    ),
    "attribute-of-a-later-version": Rule(
        "the version in force at the model's opset decides which attributes there are",
        "InvalidAttribute", lambda s: bool(_later_attributes(s)), _set_later_attribute,
    ),
    "attribute-of-another-kind": Rule(
        "an attribute has the kind that the schema gives it",
        "InvalidAttribute", lambda s: s.newest and _first_attribute(s.signature) is not None, _mistype_attribute,
    ),
    "attribute-missing": Rule(
        "a required attribute is given",
        "InvalidAttribute", lambda s: bool(_required(s.signature)), _drop_attribute,
    ),
    "attribute-no-such-choice": Rule(
        "a text that chooses is one of the values that the specification lists",
        "InvalidAttribute", lambda s: s.newest and bool(_choices(s.signature)),
        lambda m, s: _choose_nonsense(m, s, 0),
    ),
    "attribute-no-such-last-choice": Rule(
        "of several texts that choose, each is one of the values that the specification lists",
        "InvalidAttribute", lambda s: s.newest and len(_choices(s.signature)) > 1,
        lambda m, s: _choose_nonsense(m, s, -1),
    ),
    "axis-too-large": Rule(
        "an axis is below the rank of the input",
        "InvalidAttribute", lambda s: s.newest and bool(_axis_names(s.signature)), lambda m, s: _move_axis(m, s, 9),
    ),
    "axis-too-small": Rule(
        "an axis is at least minus the rank of the input",
        "InvalidAttribute", lambda s: s.newest and bool(_axis_names(s.signature)), lambda m, s: _move_axis(m, s, -9),
    ),
    "input-missing": Rule(
        "a node has at least as many inputs as its schema requires",
        "InvalidModel", lambda s: s.newest and _least_inputs(s.signature) > 0, _drop_input,
    ),
    "input-blank": Rule(
        "a required input has a name",
        "InvalidModel", lambda s: s.newest and any(at < _least_inputs(s.signature) for at, _ in s.plain), _blank_input,
    ),
    "input-too-many": Rule(
        "a node has at most as many inputs as its schema allows",
        "InvalidModel", lambda s: s.newest and _most_inputs(s.signature) < _UNLIMITED, _add_inputs,
    ),
    "output-too-many": Rule(
        "a node has at most as many outputs as its schema allows",
        "InvalidModel", lambda s: s.newest and s.signature.max_outputs < _UNLIMITED, _add_outputs,
    ),
    "output-missing": Rule(
        "a node has at least as many outputs as its schema requires",
        "InvalidModel", lambda s: s.newest and s.signature.min_outputs > 1, _drop_outputs,
    ),
    "type-not-allowed": Rule(
        "an input has one of the element types that the schema lists",
        "TypeMismatch", lambda s: s.newest and bool(_mistypable(s)), _mistype_input,
    ),
    "type-of-a-later-version": Rule(
        "the version in force at the model's opset decides which element types there are",
        "TypeMismatch", lambda s: bool(_later_types(s)), _set_later_type,
    ),
    "types-mixed": Rule(
        "inputs of one type parameter have one type",
        "TypeMismatch", lambda s: s.newest and bool(_pairs(s)), _mix_types,
    ),
    "output-type": Rule(
        "a declared output has the element type that its node gives",
        "TypeMismatch", lambda s: s.newest and _tensor_outputs(s), _mistype_output,
    ),
    "output-rank": Rule(
        "a declared output has the rank that its node gives",
        "TypeMismatch", lambda s: s.newest and _tensor_outputs(s), _rerank_output,
    ),
    "operator-before-its-opset": Rule(
        "an operator exists from its first version on",
        "UnsupportedOperator", lambda s: _is_oldest(s) and s.signature.since_version > 1, _step_back,
    ),
    "operator-taken-out": Rule(
        "a deprecated operator is gone from its opset on",
        "UnsupportedOperator", lambda s: _gone(s) is not None, _step_forward,
    ),
}  # fmt: skip
"""Name -> rule. A name starts the ids of the models that break it."""
