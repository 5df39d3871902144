"""Caffe's layers and networks: manifests to cases, cases to readable source, source to prototxt, weights and inputs."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import jinja2
import numpy as np

from generators import caffemodel, draws
from generators.caffemodel import Array
from generators.case import Case
from generators.render import draws_source
from opsets import ManifestError
from opsets.caffe import Draw, Layer, load_layers
from opsets.expressions import parse

FRAMEWORK: Final = "caffe"
NETS: Final = ("alexnet", "googlenet", "lenet", "resnet50", "ssd")
"""Whole networks, each a prototxt template with the name of the network."""

LAYER: Final = "it"
"""Name of the layer under test."""

_BOTTOMS: Final = "abcdefgh"
_UNSAFE: Final = re.compile(r"[^\w.,=+~-]+")
_LONGEST: Final = 170


@dataclass(frozen=True, slots=True)
class Built:
    """A case ready to run: the two files of a network, and arrays by the names of its inputs."""

    prototxt: str
    caffemodel: bytes | None
    inputs: dict[str, Array]
    weights: dict[str, list[Array]]


def expand(name: str) -> Iterator[Case]:
    """Every case of a layer type, in a fixed order.

    :raises ManifestError: if no manifest has it, or an expression does not evaluate.
    """
    layer, seen = _layer(name), set()
    for row in layer.rows:
        fields = {key: value for key, value in row.items() if key != "bottoms"}
        free = {key: values for key, values in layer.grid.items() if key not in fields}
        for chosen in itertools.product(*free.values()):
            settings = {**dict(zip(free, chosen, strict=True)), **fields}
            for data in layer.data:
                case = _case(name, layer, row["bottoms"], settings, data)
                if case.id not in seen and all(_value(rule, _names(layer, case)) for rule in layer.where):
                    seen.add(case.id)
                    yield case
    if layer.v1 is not None:
        first = next(_cases_of_row(name, layer), None)
        if first is not None:
            yield replace(first, since_version=1, id=first.id.replace(f"{name}-2-", f"{name}-1-", 1))


def _cases_of_row(name: str, layer: Layer) -> Iterator[Case]:
    row = layer.rows[0]
    fields = {key: value for key, value in row.items() if key != "bottoms"}
    settings = {**{key: values[0] for key, values in layer.grid.items()}, **fields}
    yield _case(name, layer, row["bottoms"], settings, layer.data[0])


def cases() -> Iterator[Case]:
    """Every case of every layer type that a manifest has."""
    for name in load_layers():
        yield from expand(name)


def render(case: Case) -> str:
    """Source that anyone can run with numpy, ml-dtypes and opencv-python-headless<5.

    :raises ManifestError: as :func:`expand` does.
    """
    code = _source(case)
    shared = "\n\n".join(inspect.getsource(function) for function in _WRITERS)
    template = _environment().get_template("reproducer.jinja")
    return template.render(case=case, code=code, draws=draws_source(code), writers=shared)


def build(case: Case) -> Built:
    """The network, its weights and inputs, by executing the case's own part of its source."""
    scope: dict[str, Any] = dict(_globals())
    exec(compile(_source(case), f"<{case.id}>", "exec", dont_inherit=True), scope)  # noqa: S102 - our own templates
    weights = scope["make_weights"]()
    data = caffemodel.caffemodel(weights, old=case.since_version == 1) if weights else None
    return Built(scope["PROTOTXT"], data, scope["make_inputs"](), weights)


def ruling(case: Case) -> tuple[str, str] | None:
    """The oracle that the manifest says to follow for a case, and the rule; None without one."""
    layer = _layer(case.operator)
    names = _names(layer, case)
    found = next((one for one in layer.ruling if one.where is None or _value(one.where, names)), None)
    return None if found is None else (found.follows, found.rule)


def tolerance(case: Case) -> str:
    """The tolerance class of a case's layer."""
    return _layer(case.operator).tolerance


def net_case(name: str) -> Case:
    """The case of a whole network."""
    return Case(
        FRAMEWORK, "nets", name, 2, 0, "float32", (), (), (), (), 1, "random", "static", f"caffe-net-{name}"
    )  # fmt: skip


_WRITERS: Final = (caffemodel.varint, caffemodel.field, caffemodel.blob, caffemodel.caffemodel, caffemodel.spread)


@cache
def _globals() -> dict[str, Any]:
    functions = {name: value for name, value in vars(draws).items() if inspect.isfunction(value)}
    return {**functions, "np": np, "spread": caffemodel.spread}


def _layer(name: str) -> Layer:
    found = load_layers().get(name)
    if found is None:
        raise ManifestError(f"found no entry for layer {name} in the manifests of caffe")
    return found


def _freeze(value: Any) -> Any:  # noqa: ANN401 - a value of YAML
    return tuple(value) if isinstance(value, list) else value


def _case(name: str, layer: Layer, bottoms: Sequence[Sequence[int]], settings: Mapping[str, Any], data: str) -> Case:
    attributes = tuple((key, _freeze(value)) for key, value in settings.items() if value is not None)
    shapes = tuple((letter, tuple(dims)) for letter, dims in zip(_BOTTOMS, bottoms, strict=False))
    pieces = [f"caffe-{name}-2-float32"]
    pieces += [f"{key}={_text(value)}" for key, value in attributes]
    pieces += ["_".join("x".join(map(str, dims)) or "scalar" for _, dims in shapes)] if shapes else []
    identity = _UNSAFE.sub("", "-".join([*pieces, data]))
    if len(identity) > _LONGEST:
        digest = hashlib.blake2b(identity.encode(), digest_size=5).hexdigest()
        identity = f"{identity[: _LONGEST - 20]}~{digest}-{data}"
    case = Case(
        FRAMEWORK, "caffe", name, 2, 0, "float32", (), attributes, (), shapes, 1, data, "static", identity
    )  # fmt: skip
    return replace(case, outputs=int(_value(layer.tops, _names(layer, case))))


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _names(layer: Layer, case: Case) -> dict[str, Any]:
    """What expressions may read: fields (None where left out and without a default), shapes, the data class."""
    every = dict.fromkeys([*layer.grid, *(key for row in layer.rows for key in row)])
    bottoms = [dims for _, dims in case.shapes]
    shapes = {"bottoms": bottoms, "first": bottoms[0] if bottoms else ()}
    return {**every, **layer.defaults, **dict(case.attributes), **shapes, "data_class": case.data_class}


def _value(expression: str, names: Mapping[str, Any]) -> Any:  # noqa: ANN401
    try:
        return parse(expression)(names)
    except ValueError as error:
        raise ManifestError(f"caffe: {error}") from error


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates" / "caffe"),
        extensions=["jinja2.ext.do"],
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Python source, not HTML
    )


def _source(case: Case) -> str:
    if case.domain == "nets":
        return _net_source(case)
    layer = _layer(case.operator)
    names = _names(layer, case)
    shapes = [_value(text, names) for text in layer.blobs]
    kept = {index: tuple(shape) for index, shape in enumerate(shapes) if shape is not None}
    rng = "rng"
    context = {
        "case": case,
        "layer": layer,
        "old": case.since_version == 1,
        "seed": f"0x{case.seed:016x}",
        "options": [line for key, value in case.attributes for line in _lines(key, value)],
        "tops": [f"y{index}" for index in range(case.outputs)],
        "weights": [_draw(layer.weights.get(index, Draw()), shape, "random", rng) for index, shape in kept.items()],
        "inputs": {
            name: _draw(layer.inputs.get(index, Draw()), dims, case.data_class if index == 0 else "random", rng)
            for index, (name, dims) in enumerate(case.shapes)
            if dims is not None
        },
    }
    return _environment().get_template("layer.jinja").render(context)


def _net_source(case: Case) -> str:
    weights: list[tuple[str, list[tuple[int, ...]]]] = []
    text = _environment().get_template(f"nets/{case.operator}.prototxt").render(weights=weights)
    inputs = re.search(r'name: "data" type: "Input" top: "data" input_param \{ shape \{ ([^}]*)\}', text)
    if inputs is None:
        raise ManifestError(f"caffe net {case.operator}: found no Input layer 'data', expected one")
    shape = tuple(int(word) for word in re.findall(r"\d+", inputs[1]))
    template = _environment().get_template("net.jinja")
    return template.render(case=case, text=text, weights=weights, shape=shape, seed=f"0x{case.seed:016x}")


def _lines(key: str, value: Any) -> list[str]:  # noqa: ANN401
    """A field in the text format: enums and messages as they are, one line for each value of a repeated one."""
    if isinstance(value, tuple):
        return [line for one in value for line in _lines(key, one)]
    if isinstance(value, str) and value.startswith("{"):
        return [f"{key} {value}"]
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return [f"{key}: {shown}"]


_BY_DRAW: Final = {
    "uniform": "uniform({rng}, {shape}, np.float32, {low}, {high})",
    "integers": "integers({rng}, {shape}, np.float32, {low}, {high})",
    "mask": "mask({rng}, {shape}, np.float32)",
    "repeat": "repeat({shape}, np.float32, {values})",
    "class": "{data}({rng}, {shape}, np.float32)",
}


def _draw(draw: Draw, shape: tuple[int, ...], data: str, rng: str) -> str:
    low, high = draw.range or (0, 1)
    return _BY_DRAW[draw.draw].format(rng=rng, shape=shape, low=low, high=high, values=draw.values, data=data)
