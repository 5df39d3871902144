"""Source of a case of TensorFlow: how its inputs are drawn, and the function on raw operators that takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from generators.drawing import draw_code
from generators.render import draws_source, python_source
from generators.tensorflow_cases import TensorflowCase, expression_names, list_inputs
from opsets.elements import numpy_source
from opsets.errors import ManifestError
from opsets.manifest import Draw
from opsets.tensorflow_manifest import TensorflowItem, tensorflow_item

_TENSORFLOW_SPELLING = {
    "float8e4m3fn": "dtypes.float8_e4m3fn",
    "float8e4m3fnuz": "dtypes.float8_e4m3fnuz",
    "float8e5m2": "dtypes.float8_e5m2",
    "float8e5m2fnuz": "dtypes.float8_e5m2fnuz",
    "float4e2m1": "dtypes.float4_e2m1fn",
}
_EXPERIMENTAL = frozenset({"int4", "uint4", "int2", "uint2"})


def type_source(element: str) -> str:
    """Python expression for TensorFlow's element type, as it stands in rendered source."""
    if element in _TENSORFLOW_SPELLING or element in _EXPERIMENTAL:
        return f"{_TENSORFLOW_SPELLING.get(element, f'dtypes.{element}')}"
    return f"tf.{element}"


@dataclass(frozen=True, slots=True)
class _Input:
    """One tensor of the program: where it comes from, and the source that makes its data."""

    name: str
    element: str
    shape: tuple[int, ...]
    code: str
    role: str
    """argument | constant | variable"""


@dataclass(frozen=True, slots=True)
class Sources:
    """The two pieces of a case: `make_inputs()`, and the function `model`, which reads data of constants in `VALUES`.

    ``arguments`` are the places of the function's arguments among what `make_inputs()` gives.
    """

    inputs: str
    model: str
    arguments: tuple[int, ...]


def tensorflow_source(case: TensorflowCase, *, wide: bool = False) -> Sources:
    """Source of a case; ``wide`` in float64 where it has a narrower float, on the same values."""
    item = tensorflow_item(case.operator)
    inputs = list(_inputs(case, item, wide))
    templates = environment()
    context = _context(case, item, inputs, wide=wide)
    names = {**context, **{name: _value_source(item, name, value) for name, value in case.parameters}}
    names["key"] = python_source(f"{case.seed:x}{'w' if wide else ''}")
    names["call"] = _call(case, item, context["types"])
    body = _lines(_body(item, case.form), names)
    context |= {"body": body, "setup": _lines(item.entry.setup, names), "outputs": item.entry.outputs}
    return Sources(
        templates.get_template("inputs.jinja").render(inputs=inputs, seed=f"0x{case.seed:016x}"),
        templates.get_template("model.jinja").render(context),
        tuple(place for place, one in enumerate(inputs) if one.role == "argument"),
    )


def render_tensorflow(case: TensorflowCase) -> str:
    """Source that anyone can run with numpy, ml_dtypes and TensorFlow: inputs, and what TensorFlow makes of them."""
    sources = tensorflow_source(case)
    return (
        environment()
        .get_template("reproducer.jinja")
        .render(case=case, sources=sources, draws=draws_source(sources.inputs), uses_dtypes="dtypes." in sources.model)
    )


def _body(item: TensorflowItem, form: int) -> str:
    body = item.entry.body
    return (body if isinstance(body, str) else body[form]) or "{{ call }}"


def _lines(text: str, names: Mapping[str, Any]) -> list[str]:
    return environment().from_string(text).render(names).rstrip().splitlines()


def _context(case: TensorflowCase, item: TensorflowItem, inputs: list[_Input], *, wide: bool) -> dict[str, Any]:
    types = _types(case, item, wide)
    specs = [
        (one.name, python_source([None] * len(one.shape) if case.mode == "symbolic" else list(one.shape)), one.element)
        for one in inputs
        if one.role == "argument"
    ]
    constants = [
        (name, f"tf.constant({python_source(value)}, {type_source(element)})")
        for name, value, element in _by_value(case, item, types)
        if case.mode != "fed"
    ]
    return {
        "arguments": [(name, f"tf.TensorSpec({dims}, {type_source(element)})") for name, dims, element in specs],
        "held": [(place, one) for place, one in enumerate(inputs) if one.role != "argument"],
        "constants": constants,
        "dtype": type_source(_element(case.dtype, wide)),
        "types": types,
        "type": {name: type_source(element) for name, element in types.items()},
    }


def _element(element: str, wide: bool) -> str:
    return "float64" if wide and element in {"float32", "float16", "bfloat16"} else element


def _types(case: TensorflowCase, item: TensorflowItem, wide: bool) -> dict[str, str]:
    """Element type by type attribute: the case's, a parameter's, the default, or int32."""
    parameters = dict(case.parameters)
    types = {}
    for name, allowed in item.raw.types.items():
        if name == item.dtype_attribute:
            types[name] = _element(case.dtype, wide)
        elif isinstance(parameters.get(name), str):
            types[name] = parameters[name]
        elif name in item.raw.defaults:
            types[name] = item.raw.defaults[name]
        else:
            types[name] = "int32" if "int32" in allowed else next(iter(allowed), "float32")
    return types


def _type_of_input(item: TensorflowItem, name: str, types: Mapping[str, str]) -> str:
    argument = item.raw.input(name)
    named = item.entry.extra.get(name) if argument is None else argument.type
    if named is None:
        raise ManifestError(f"{item.source}: {item.operator}: found no input '{name}', expected one of the operator's")
    return types.get(named, named)


def _is_input(item: TensorflowItem, name: str) -> bool:
    return item.raw.input(name) is not None or name in item.entry.extra


def _by_value(case: TensorflowCase, item: TensorflowItem, types: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    """(name, value, element type) of inputs that are given by value; those of a list one by one."""
    several = list_inputs(item)
    for name, value in case.parameters:
        if _is_input(item, name):
            element = _type_of_input(item, name, types)
            if name in several:
                yield from ((f"{name}_{place}", part, element) for place, part in enumerate(value))
            else:
                yield name, value, element


def _inputs(case: TensorflowCase, item: TensorflowItem, wide: bool) -> Iterator[_Input]:
    types, narrow = _types(case, item, wide), _types(case, item, wide=False)
    names = expression_names(item, dict(case.shapes), dict(case.parameters), case.dtype, case.data_class)
    first = True
    for name, dims in case.shapes:
        draw = item.entry.inputs.get(name, Draw())
        element, drawn = (_drawn_type(item, name, draw, found) for found in (types, narrow))
        several = name in list_inputs(item)
        for place, shape in enumerate(dims if several else (dims,)):
            try:
                code = draw_code(draw, case.data_class, drawn, shape, names)  # type: ignore[arg-type] # one shape
            except ValueError as error:
                raise ManifestError(f"{item.source}: {item.operator}.inputs.{name}: {error}") from error
            # Of denormals in float64 TensorFlow, which flushes them, can say nothing, and nothing is wider.
            code = f"flushed({code})" if drawn == "float64" and case.data_class == "special" else code
            code = code if element == drawn else f"{code}.astype({numpy_source(element)})"
            role = "variable" if name in item.entry.variables else "argument"
            if case.mode == "initializer" and not first and role == "argument":
                role = "constant"
            yield _Input(f"{name}_{place}" if several else name, element, shape, code, role)  # type: ignore[arg-type]
            first = False
    if case.mode == "fed":
        for name, value, element in _by_value(case, item, types):
            shape = _shape_of(value)
            yield _Input(name, element, shape, f"np.array({python_source(value)}, {numpy_source(element)})", "argument")


def _drawn_type(item: TensorflowItem, name: str, draw: Draw, types: Mapping[str, str]) -> str:
    if draw.type is not None:
        return types.get(draw.type, draw.type)
    return _type_of_input(item, name, types)


def _shape_of(value: Any) -> tuple[int, ...]:  # noqa: ANN401 - a value of YAML
    if not isinstance(value, tuple):
        return ()
    return (len(value), *(_shape_of(value[0]) if value else ()))


def _call(case: TensorflowCase, item: TensorflowItem, types: Mapping[str, str]) -> str:
    """The plain call: inputs and attributes by name; types that follow from inputs are not named."""
    raw = item.raw
    given = {name for name, _ in (*case.shapes, *case.parameters)}
    arguments = [f"{one.name}={_argument(case, item, one.name)}" for one in raw.inputs if one.name in given]
    followed = {argument.type for argument in raw.inputs}
    parameters = dict(case.parameters)
    for name, kind in raw.attributes.items():
        if kind == "type" and name not in followed and (name == item.dtype_attribute or name not in raw.defaults):
            arguments.append(f"{name}={type_source(types[name])}")
        elif name in parameters and name not in followed:
            arguments.append(f"{name}={_attribute_source(kind, parameters[name])}")
    return f"tf.raw_ops.{raw.name}({', '.join(arguments)})"


def _argument(case: TensorflowCase, item: TensorflowItem, name: str) -> str:
    if name not in list_inputs(item):
        return f"{name}.handle" if name in item.entry.variables else name
    value = dict(case.parameters).get(name)
    count = len(dict(case.shapes)[name]) if value is None else len(value)
    return f"[{', '.join(f'{name}_{place}' for place in range(count))}]"


def _attribute_source(kind: str, value: Any) -> str:  # noqa: ANN401 - a value of YAML
    if kind == "type":
        return type_source(str(value))
    if kind == "list(type)":
        return f"[{', '.join(map(type_source, value))}]"
    if kind == "float":
        return repr(float(value))
    return python_source(value)


def _value_source(item: TensorflowItem, name: str, value: Any) -> str:  # noqa: ANN401
    """A parameter as the body may write it; the name itself where it is an input by value."""
    if _is_input(item, name):
        return name
    return _attribute_source(item.raw.attributes.get(name, ""), value)


@cache
def environment() -> jinja2.Environment:
    """The templates of TensorFlow's programs."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates" / "tensorflow"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Python source, not HTML
    )
