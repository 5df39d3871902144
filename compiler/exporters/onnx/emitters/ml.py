"""Tables, maps and trees: operators of ai.onnx.ml."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.exporters.onnx.emit import Emit, tensor_proto
from compiler.exporters.onnx.forms import NoForm, exports
from compiler.ir import F16, F32, F64, I64, STRING, Constant, ElementType, Op
from compiler.onnx_types import DATA_TYPES
from compiler.ops.ml_lookup import TableLookup
from compiler.ops.ml_maps import MapCast, MapVectorize, ZipMap
from compiler.ops.ml_trees import MODES, TreeEnsemble

if TYPE_CHECKING:
    import onnx

    from compiler.ir import Array

_ML: Final = "ai.onnx.ml"
_CASTS: Final = {F32: "TO_FLOAT", I64: "TO_INT64", STRING: "TO_STRING"}
_AGGREGATES: Final = ("average", "sum", "min", "max")


def _keys(op: Op, name: str, integers: str, strings: str) -> dict[str, list[int] | list[str]]:
    """A vector of keys as one of two attributes."""
    constant = op.call().constant(name)
    return {strings if constant.type.element is STRING else integers: constant.array.reshape(-1).tolist()}


@exports(TableLookup)
def table_lookup(op: Op, e: Emit) -> None:
    """Keys and values as tensors."""
    call = op.call()
    tables = {f"{name}_tensor": tensor_proto(call.constant(name).array, name) for name in ("keys", "values")}
    default = tensor_proto(call.constant("default").array.reshape(1), "default")
    e.op(op, "LabelEncoder", domain=_ML, default_tensor=default, **tables)


@exports(MapVectorize)
def map_vectorize(op: Op, e: Emit) -> None:
    """A vocabulary."""
    e.op(op, "DictVectorizer", domain=_ML, **_keys(op, "vocabulary", "int64_vocabulary", "string_vocabulary"))


@exports(MapCast)
def map_cast(op: Op, e: Emit) -> None:
    """Dense without a width, sparse with one."""
    call = op.call()
    width = call.get("width")
    form = "DENSE" if width is None else "SPARSE"
    e.op(op, "CastMap", domain=_ML, cast_to=_CASTS[call.element("to")], map_form=form, max_map=width)


@exports(ZipMap)
def zip_map(op: Op, e: Emit) -> None:
    """Labels."""
    e.op(op, "ZipMap", domain=_ML, **_keys(op, "labels", "classlabels_int64s", "classlabels_strings"))


@exports(TreeEnsemble)
def tree_ensemble(op: Op, e: Emit) -> None:
    """Nodes and leaves numbered apart. Raises NoForm for leaves with other than one weight, and a used mask."""
    call = op.call()
    if op.results[1].users:
        raise NoForm("TreeEnsemble does not say which targets a leaf reaches")
    arrays = {name: value.array for name, value in op.attributes.items() if isinstance(value, Constant)}
    leaves = np.flatnonzero(arrays["modes"] == MODES.index("leaf"))
    inner = np.flatnonzero(arrays["modes"] != MODES.index("leaf"))
    if sorted(arrays["weight_nodes"].tolist()) != leaves.tolist() or np.isin(arrays["roots"], leaves).any():
        raise NoForm("TreeEnsemble has one weight a leaf")
    order = np.argsort(arrays["weight_nodes"], kind="stable")
    numbers = np.zeros(arrays["modes"].size, np.int64)
    numbers[leaves], numbers[inner] = np.arange(leaves.size), np.arange(inner.size)
    element = _compared(op.operand(0).tensor.element, arrays["splits"])
    x, result = e.name(op.operand(0)), e.result_name(op.results[0])
    given = x if op.operand(0).tensor.element is element else e.cast(x, element)
    ends = {
        f"nodes_{name}{kind}": values.tolist()
        for name, side in (("true", arrays["on_true"][inner]), ("false", arrays["on_false"][inner]))
        for kind, values in (("nodeids", numbers[side]), ("leafs", np.isin(side, leaves).astype(np.int64)))
    }
    members = {name: _real(arrays[name], element, "membership_values") for name in ("members",) if name in arrays}
    scores = e.new(
        "TreeEnsemble",
        given,
        domain=_ML,
        aggregate_function=_AGGREGATES.index(call.text("aggregate")),
        n_targets=call.integer("targets"),
        tree_roots=numbers[arrays["roots"]].tolist(),
        nodes_featureids=arrays["features"][inner].tolist(),
        nodes_modes=tensor_proto(arrays["modes"][inner].astype(np.uint8), "nodes_modes"),
        nodes_splits=_real(arrays["splits"][inner], element, "nodes_splits"),
        nodes_missing_value_tracks_true=arrays["missing"][inner].tolist(),
        leaf_targetids=arrays["weight_targets"][order].tolist(),
        leaf_weights=_real(arrays["weights"][order], element, "leaf_weights"),
        membership_values=members.get("members"),
        **ends,
    )
    if call.element("to") is element:
        e.node("Identity", [scores], [result])
    else:
        e.node("Cast", [scores], [result], to=DATA_TYPES[call.element("to")])


def _real(array: Array, element: ElementType, name: str) -> onnx.TensorProto:
    return tensor_proto(array.astype(element.dtype), name)


def _compared(x: ElementType, splits: Array) -> ElementType:
    """The type to compare in: x's own where the splits have it, else float64."""
    fits = x in {F16, F32} and np.array_equal(splits.astype(x.dtype).astype(np.float64), splits.astype(np.float64))
    return x if fits else F64
