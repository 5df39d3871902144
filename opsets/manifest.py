"""The form of a manifest file, and of one operator's entry in it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from opsets.expressions import parse
from opsets.tolerance import parse_tolerance

Value = bool | int | float | str | list[int] | list[float] | list[str] | None
"""A value of a grid. None means: left out, so that the framework's default holds."""

DATA_CLASSES = ("random", "mixed", "zeros", "large", "boundary", "special", "ties")
INPUT_MODES = ("static", "symbolic", "initializer")
DataClass = Literal["random", "mixed", "zeros", "large", "boundary", "special", "ties"]
InputMode = Literal["static", "symbolic", "initializer"]


def _expression(text: object) -> object:
    if isinstance(text, str):
        parse(text)
    return text


def _tolerance(text: object) -> object:
    if isinstance(text, str):
        parse_tolerance(text)
    return text


def _by_group(found: object) -> object:
    return {"all": found} if isinstance(found, str) else found


Expression = Annotated[str, BeforeValidator(_expression)]
Bound = Annotated[int | float | str, BeforeValidator(_expression)]
Dim = Annotated[int | str, BeforeValidator(_expression)]
Dims = list[Dim] | None
ToleranceName = Annotated[str, BeforeValidator(_tolerance)]
Tolerances = Annotated[dict[str, ToleranceName], BeforeValidator(_by_group)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Draw(_Strict):
    """How one input is filled. Without any key it takes the case's data class over the whole range of its type."""

    draw: Literal["class", "uniform", "integers", "distinct", "sorted", "mask", "choice", "repeat", "bitmap"] = Field(
        default="class",
        description="class: the case's data class. uniform: floats in `range`. integers: in [`range`). distinct: "
        "integers in [`range`) without a duplicate along `axis`. sorted: ascending along the last axis. mask: true or "
        "false. choice: one of `values`. repeat: `values`, from the start again when used up. bitmap: the "
        "bytes of a BMP file of `range` rows and columns",
    )
    range: tuple[Bound, Bound] | None = Field(default=None, strict=False, description="bounds; clips every data class")
    axis: Bound | None = None
    values: list[Bound] | None = None
    nonzero: bool = Field(default=False, description="zeros become ones: for divisors of integers")
    finite: bool = Field(default=False, description="the data class `special` leaves this input alone")
    ordered: bool = Field(default=False, description="NaN become ones: the operator compares, and nothing orders a NaN")
    type: str | None = Field(
        default=None, description="element type or type parameter, where the schema leaves it open"
    )


class Ruling(_Strict):
    """Which oracle follows the specification where oracles differ, and by which rule."""

    follows: Literal["onnxruntime", "onnxruntime-widened", "reference", "twin", "native", "native-widened"]
    rule: str
    where: Expression | None = None


class Twin(_Strict):
    """A modern model with the meaning of an old operator version, written from its specification.

    ``nodes`` is ONNX's text syntax, a Jinja template over the case's names. The names of the operator's inputs and
    outputs are the graph's. ``same`` means: the same node, without the attributes that ``opset`` no longer has.
    """

    nodes: str = "same"
    opset: int = 18
    where: Expression | None = None


class Entry(_Strict):
    """What is tried of one operator version."""

    since: int = Field(default=1, description="opset that brought the operator: an older onnx passes the entry over")
    shapes: list[list[Dims] | dict[str, Any]] = Field(
        default=[[]],
        description="shapes of inputs, by position or name; a row by name may also set attributes and inputs by value",
    )
    grid: dict[str, list[Value]] = Field(
        default={}, description="values of attributes, inputs by value, and parameters"
    )
    sets: list[dict[str, Value]] = Field(default=[], description="values that only make sense together")
    by_value: list[str] = Field(
        default=[], description="inputs that shape rows give by value; those of grid and sets are"
    )
    extra: dict[str, str] = Field(
        default={},
        description="graph inputs beside the node's, for bodies: name to type parameter or element",
    )
    parameters: list[str] = Field(default=[], description="names that are neither attribute nor input")
    inputs: dict[str, Draw] = Field(default={})
    where: list[Expression] = Field(default=[], description="what must hold of a case")
    data: list[DataClass] = Field(default=["random"])
    no_special: str | None = Field(
        default=None, description="why NaN and infinities are not tried, where some float type goes without them"
    )
    modes: list[InputMode] = Field(default=["static", "symbolic", "initializer"])
    dtype: str | None = Field(default=None, description="type parameter that a case's dtype means; the first input's")
    types: dict[str, list[str]] = Field(default={}, description="elements of a type parameter; all of the schema's")
    output_types: dict[str, str] = Field(default={}, description="type parameters of outputs, by expression")
    outputs: list[Bound] = Field(default=[], description="counts of outputs asked for; the least that the schema takes")
    output_shapes: dict[str, Expression] = Field(
        default={}, description="where onnx has no shape inference: expressions"
    )
    tolerance: Tolerances = Field(default={}, description="class by element name or group, or one for all")
    template: str = "node"
    twin: Twin | None = None
    ruling: list[Ruling] = Field(default=[])
    cap: int | None = Field(
        default=None, description="greatest number of cases of the newest version, beyond one for each type"
    )


class Overrides(Entry):
    """An entry's base and what differs in ranges of versions: ``1-6`` or ``13+``."""

    versions: dict[str, dict[str, Any]] = Field(default={})


class File(_Strict):
    """One manifest file: a family of operators."""

    framework: Literal["onnx", "torch", "tensorflow", "caffe"]
    domain: str = "ai.onnx"
    family: str
    defaults: dict[str, Any] = Field(default={}, description="keys that entries of this file start from")
    operators: dict[str, dict[str, Any] | None]
