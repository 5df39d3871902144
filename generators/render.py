"""Case -> standalone Python source -> model and inputs.

The rendered source is the only description of a case: :func:`build` executes it, so a reproducer is what ran.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

import jinja2

from generators import draws
from generators.case import Case
from generators.drawing import draw_code
from generators.expand import names_of, parse_cached
from opsets import Draw, Item, ManifestError, find_item
from opsets.elements import ELEMENTS, numpy_source, proto_name
from opsets.signature import Attribute, Parameter

if TYPE_CHECKING:
    import numpy as np
    import onnx

_REMARK = re.compile(r"  # noqa:.*")
_CALL = re.compile(r"(?<![\w.])(\w+)\(")
_OLDEST_IR = 8
"""Initializers need not be graph inputs from IR 4 on; bfloat16 and sequences are well-defined from 8 on."""
_IR_OF_OPSET = ((28, 14), (25, 13), (24, 12), (23, 11), (21, 10), (19, 9))
"""(opset, IR version that came with it), newest first; see onnx.helper.VERSION_TABLE."""


@dataclass(frozen=True, slots=True)
class Input:
    """A graph input or initializer as the templates see it."""

    name: str
    code: str
    proto: str
    dims: str
    initializer: bool


@dataclass(frozen=True, slots=True)
class Output:
    """A graph output as the templates see it."""

    name: str
    proto: str
    dims: str
    kind: str


def render(case: Case) -> str:
    """Source of the case that anyone can run with numpy, onnx and onnxruntime alone.

    :raises ManifestError: if no manifest has the case's operator, or an expression of its entry does not evaluate.
    """
    code = _case_source(case)
    return _environment().get_template("reproducer.jinja").render(case=case, code=code, draws=draws_source(code))


def build(case: Case) -> tuple[onnx.ModelProto, list[np.ndarray[Any, Any]]]:
    """The model and the values of its graph inputs, in order, by executing the case's own part of its source.

    :raises ManifestError: as :func:`render` does.
    """
    scope = dict(_globals())
    exec(_compiled(_case_source(case), case.id), scope)  # noqa: S102 - our own templates
    values = scope["make_inputs"]()
    model = scope["make_model"](values)
    return model, [values[one.name] for one in model.graph.input]


def twin(case: Case) -> onnx.ModelProto | None:
    """The modern model that the manifest gives for an old operator version, on the same graph inputs; None without one.

    :raises ManifestError: if the twin's text does not parse.
    """
    item = _item(case)
    spec = item.entry.twin
    names = names_of(item, case)
    if spec is None or (spec.where is not None and not parse_cached(spec.where)(names)):
        return None
    from generators.twins import make_twin

    return make_twin(case, item, names, build(case)[0])


def reproducer_scope(source: str) -> dict[str, Any]:
    """Execute a whole reproducer, as a user's interpreter would, and return what it defines."""
    scope: dict[str, Any] = {"__name__": "reproducer"}
    exec(compile(source, "<reproducer>", "exec"), scope)  # noqa: S102 - our own templates
    return scope


def _item(case: Case) -> Item:
    return find_item(case.framework, case.domain, case.operator, case.since_version)


def _compiled(source: str, name: str) -> CodeType:
    return compile(source, f"<{name}>", "exec", dont_inherit=True, optimize=0)


@cache
def _globals() -> dict[str, Any]:
    import ml_dtypes
    import numpy as np
    from onnx import AttributeProto, TensorProto, helper, numpy_helper, shape_inference

    functions = {name: value for name, value in vars(draws).items() if inspect.isfunction(value)}
    modules = {"np": np, "ml_dtypes": ml_dtypes, "helper": helper, "numpy_helper": numpy_helper}
    modules["shape_inference"] = shape_inference
    return {**functions, **modules, "TensorProto": TensorProto, "AttributeProto": AttributeProto}


@cache
def _environment() -> jinja2.Environment:
    folder = Path(__file__).parent / "templates" / "onnx"
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Python source, not HTML
    )


@cache
def _draw_functions() -> dict[str, tuple[str, frozenset[str]]]:
    """Source of each draw function, without remarks to the linter, and the names of those that it calls."""
    functions = {name: value for name, value in vars(draws).items() if inspect.isfunction(value)}
    sources = {name: _REMARK.sub("", inspect.getsource(value)) for name, value in functions.items()}
    called = {name: frozenset(_CALL.findall(source)) & functions.keys() for name, source in sources.items()}
    return {name: (source, called[name] - {name}) for name, source in sources.items()}


def draws_source(code: str) -> str:
    """Source of the draw functions that a piece of code calls, with those that they call, in the module's order."""
    functions = _draw_functions()
    needed: set[str] = set()
    open_names = [name for name in _CALL.findall(code) if name in functions]
    while open_names:
        name = open_names.pop()
        if name not in needed:
            needed.add(name)
            open_names += functions[name][1]
    return "\n\n".join(functions[name][0] for name in functions if name in needed)


def python_source(value: object) -> str:
    """A value as Python source, with text in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(python_source, value))}]"
    return repr(value)


def ir_version(opset: int) -> int:
    """IR version to write beside an opset of ai.onnx."""
    return next((version for since, version in _IR_OF_OPSET if opset >= since), _OLDEST_IR)


def _case_source(case: Case) -> str:
    item = _item(case)
    names = names_of(item, case)
    inputs = list(_inputs(case, item, names))
    context = {
        "case": case,
        "item": item,
        "names": names,
        "seed": f"0x{case.seed:016x}",
        "inputs": inputs,
        "outputs": list(_outputs(case, item, names)),
        "source": python_source,
        "node_inputs": _node_inputs(case, item, {one.name for one in inputs}),
        "attributes": _attributes(case, item),
        "empty_attributes": _empty_attributes(case, item),
        "ir_version": ir_version(case.opset),
        "opset_domain": "" if case.domain == "ai.onnx" else case.domain,
        "proto": proto_name,
        "numpy": numpy_source,
        "settings": case.settings,
        "types": _types(case, item),
        "sequences": _sequences(case, item),
        "optionals": [formal.name for formal in item.signature.inputs if formal.kind == "optional"],
    }
    return _environment().get_template(f"{item.entry.template}.jinja").render(context)


def _types(case: Case, item: Item) -> dict[str, str]:
    types = dict(case.types)
    if item.dtype_parameter is not None:
        types[item.dtype_parameter] = case.dtype
    return types


def _formals(case: Case, item: Item) -> Iterable[tuple[str, Parameter]]:
    """(name, formal) of the inputs given, in the order of the signature."""
    shapes = dict(case.shapes)
    values = dict(case.values)
    for formal in item.inputs:
        if (formal.variadic or formal.kind == "sequence") and formal.name not in values:
            yield from ((name, formal) for name in shapes if name.rpartition("_")[0] == formal.name)
        elif values.get(formal.name, shapes.get(formal.name)) is not None:
            yield formal.name, formal


def _inputs(case: Case, item: Item, names: dict[str, object]) -> Iterable[Input]:
    values, shapes, types = dict(case.values), dict(case.shapes), _types(case, item)
    first = True
    for name, formal in _formals(case, item):
        draw = item.entry.inputs.get(formal.name, Draw())
        element = _element(item, formal, draw, types)
        if formal.name in values:
            code, shape = _value_code(values[formal.name], element)
        else:
            shape = shapes[name] or ()
            code = _draw_code(case, item, draw, names, shape, element)
        symbolic = case.input_mode == "symbolic" and formal.name not in values
        dims = [f"{name}_{axis}" for axis in range(len(shape))] if symbolic else list(shape)
        yield Input(
            name, code, proto_name(element), python_source(dims), case.input_mode == "initializer" and not first
        )
        first = False


def _element(item: Item, formal: Parameter, draw: Draw, types: dict[str, str]) -> str:
    if draw.type is not None:
        return types.get(draw.type, draw.type)
    if formal.type_name is not None and formal.type_name in types:
        return types[formal.type_name]
    if len(formal.elements) == 1:
        return formal.elements[0]
    raise ManifestError(
        f"{item.source}: {item.operator}-{item.since_version}.inputs.{formal.name}: found no type, expected one of "
        f"{', '.join(formal.elements)}"
    )


def _value_code(value: Any, element: str) -> tuple[str, tuple[int, ...]]:  # noqa: ANN401
    shape = (len(value),) if isinstance(value, tuple) else ()
    return f"np.array({python_source(value)}, {numpy_source(element)})", shape


def _draw_code(
    case: Case, item: Item, draw: Draw, names: dict[str, object], shape: tuple[int, ...], element: str
) -> str:
    try:
        return draw_code(draw, case.data_class, element, shape, names)
    except ValueError as error:
        raise ManifestError(f"{item.source}: {item.operator}-{item.since_version}.inputs: {error}") from error


def _outputs(case: Case, item: Item, names: dict[str, object]) -> Iterable[Output]:
    types = _types(case, item)
    taken = {name for name, _ in _formals(case, item)}
    formals: list[tuple[str, Parameter]] = []
    for formal in item.signature.outputs:
        if formal.variadic:
            formals += [(f"{formal.name.rstrip('.')}_{index}", formal) for index in range(case.outputs - len(formals))]
        else:
            formals.append((formal.name, formal))
    for name, formal in formals[: case.outputs]:
        element = _output_element(item, formal, types, names)
        text = item.entry.output_shapes.get(name) or item.entry.output_shapes.get(formal.name)
        dims = None if text is None else parse_cached(text)(names)
        shown = "None" if dims is None else python_source([_symbol(name, at, dim) for at, dim in enumerate(dims)])
        yield Output(f"{name}_out" if name in taken else name, proto_name(element), shown, formal.kind)


def _symbol(name: str, axis: int, dim: int | None) -> int | str:
    """A dimension as :func:`onnx.helper.make_tensor_value_info` takes it; a name where only the data decide it."""
    return f"{name}_{axis}" if dim is None else dim


def _output_element(item: Item, formal: Parameter, types: dict[str, str], names: dict[str, object]) -> str:
    if formal.type_name in item.entry.output_types:
        return str(parse_cached(item.entry.output_types[str(formal.type_name)])(names))
    if formal.type_name in types:
        return types[str(formal.type_name)]
    if formal.elements:
        return formal.elements[0]
    raise ManifestError(f"{item.source}: {item.operator}: found no type for output '{formal.name}', expected one")


def _node_inputs(case: Case, item: Item, given: set[str]) -> list[str]:
    """Names for the node, with the empty name for an optional input that is left out before one that is given."""
    names: list[str] = []
    shapes = dict(case.shapes)
    for formal in item.signature.inputs:
        if formal.kind == "sequence":
            names.append(formal.name)
        elif formal.variadic:
            names += [name for name in shapes if name.rpartition("_")[0] == formal.name]
        else:
            names.append(formal.name if formal.name in given else "")
    while names and not names[-1]:
        names.pop()
    return names


def _sequences(case: Case, item: Item) -> dict[str, list[str]]:
    """Sequence inputs of the node, with the graph inputs that they are made of."""
    names = [name for name, _ in case.shapes]
    return {
        formal.name: [name for name in names if name.rpartition("_")[0] == formal.name]
        for formal in item.signature.inputs
        if formal.kind == "sequence"
    }


def _attributes(case: Case, item: Item) -> list[tuple[str, str]]:
    attributes = item.signature.attributes
    return [(name, _attribute_code(attributes[name], value, case)) for name, value in case.attributes if value != ()]


def _empty_attributes(case: Case, item: Item) -> list[tuple[str, str]]:
    """Attributes that are empty lists: onnx.helper cannot tell their kind from their value."""
    return [(name, item.signature.attributes[name].kind) for name, value in case.attributes if value == ()]


def _attribute_code(attribute: Attribute, value: Any, case: Case) -> str:  # noqa: ANN401
    if attribute.kind == "TENSOR":
        listed, element = list(value) if isinstance(value, tuple) else [value], case.dtype
        if listed and listed[0] in ELEMENTS:  # a text in front names another type: [uint8, "0", "1"]
            element, *listed = listed[0], *map(int, listed[1:])
        array = f"np.array({python_source(listed)}, {numpy_source(element)})"
        return f'numpy_helper.from_array({array}, "{attribute.name}")'
    if attribute.kind == "SPARSE_TENSOR":
        count, element = len(value), numpy_source(case.dtype)
        values = f'numpy_helper.from_array(np.array({python_source(value)}, {element}), "{attribute.name}")'
        places = f'numpy_helper.from_array(np.arange(0, {2 * count}, 2), "{attribute.name}_indices")'
        return f"helper.make_sparse_tensor({values}, {places}, [{2 * count}])"
    if attribute.kind == "TYPE_PROTO":
        return f"helper.make_tensor_type_proto(TensorProto.{proto_name(case.dtype)}, None)"
    if attribute.kind == "INT" and isinstance(value, str):
        return f"TensorProto.{proto_name(value)}"
    if attribute.kind == "FLOAT":
        return repr(float(value))
    if attribute.kind == "FLOATS":
        return python_source([float(one) for one in value])
    return python_source(value)
