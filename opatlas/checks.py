"""Models beside their reference: onnxruntime without its optimizer, and an exact value to tell noise from error."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opatlas.natives import Native, NoReference, native_of
from opatlas.work import Draw, compile_model, read_inputs

if TYPE_CHECKING:
    from onnx import ModelProto

    from compiler.api import CompiledModel


def check_model(
    compiled: CompiledModel, model: Path, feeds: Mapping[str, Any], weights: Path | None = None
) -> dict[str, Any]:
    """Run a model and its reference on the same inputs; return what `opatlas check` shows, as plain data."""
    from reports.execution import host_operators_json

    result = compiled.simulate(feeds)
    outputs, references = _judged(compiled, result.outputs or (), model, feeds, weights)
    return {
        "schema": 1,
        "model": model.name,
        "target": compiled.target.name,
        "placement": result.placement,
        "outputs": outputs,
        "references": references,
        "host_operators": host_operators_json(result),
    }


def _judged(
    compiled: CompiledModel, outputs: Sequence[Any], model: Path, feeds: Mapping[str, Any], weights: Path | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The outputs beside the first reference that runs the model, and what each of the references says of them all.

    The model's own framework goes before onnxruntime on the graph written back to ONNX. Both together say where a fault
    is: where only the framework differs, the import is wrong, or the framework.
    """
    onnx_model = load_model(model, weights, feeds)
    ordered = {name: feeds[name] for name in compiled.input_names}
    native = native_of(model, weights) if _narrow_dtype(compiled) is None else None
    exported = "onnxruntime" if native is None else "onnxruntime on the exported graph"
    ways = [(exported, None)] if native is None else [(native.framework, native), (exported, None)]
    rows: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    for name, way in ways:
        try:
            found = _compare(compiled, outputs, onnx_model, ordered, way)
        except NoReference as reason:
            if len(ways) == 1 or (way is None and not rows):
                raise
            said.append({"name": name, "agrees": None, "reason": str(reason)})
            continue
        rows = rows or found
        said.append({"name": name, "agrees": all(row["agrees"] for row in found), "reason": None})
    return rows, said


def locate(model: Path, target: str, draw: Draw, precision: str | None, weights: Path | None = None) -> dict[str, Any]:
    """Compare the value of every node with the reference; return the first that differs, if any, as plain data.

    All values are made outputs for that, so what fusion alone breaks is not found here.
    """
    from onnx import ValueInfoProto

    opened = load_model(model, weights)
    known = {value.name for value in opened.graph.output}
    makers = {name: node for node in opened.graph.node for name in node.output if name}
    opened.graph.output.extend(ValueInfoProto(name=name) for name in makers if name not in known)
    compiled = compile_model(opened, target, precision=precision)
    feeds = read_inputs(compiled, draw)
    rows = _compare(compiled, compiled.run(feeds), opened, feeds)
    by_name = {row["name"]: row for row in rows}
    first = next((by_name[name] for name in makers if not by_name[name]["agrees"]), None)
    if first is not None:
        node = makers[first["name"]]
        first |= {"operator": node.op_type, "node": node.name}
    return {"schema": 1, "model": model.name, "target": compiled.target.name, "compared": len(rows), "first": first}


def _compare(
    compiled: CompiledModel,
    outputs: Sequence[Any],
    model: ModelProto,
    feeds: Mapping[str, Any],
    native: Native | None = None,
) -> list[dict[str, Any]]:
    from reports.agreement import compare_output

    dtype = _narrow_dtype(compiled)
    if dtype is None:
        run = partial(run_onnxruntime, model) if native is None else native.run
        reference, found = list(run(feeds)), list(outputs)
    else:
        reference = run_onnxruntime(*_in_type(dtype, model, feeds))
        # These were cast from the narrow type at the model's border, so nothing is lost by going back.
        found = [_as_type(dtype, output) for output in outputs]
    exact = most_exact(model, feeds, reference)
    compared = zip(compiled.output_names, found, reference, exact, strict=True)
    return [asdict(compare_output(name, *values)) for name, *values in compared]


def _narrow_dtype(compiled: CompiledModel) -> Any:  # noqa: ANN401 - a numpy dtype or None
    """Return the narrower type that the target computes floats in by permission, else None."""
    from compiler.passes.narrow import NARROW, lacking

    precision = compiled.options.precision
    return None if precision is None or not lacking(compiled.target) else NARROW[precision].dtype


def _in_type(dtype: Any, model: ModelProto, feeds: Mapping[str, Any]) -> tuple[ModelProto, dict[str, Any]]:  # noqa: ANN401
    """Return the model cast to a float type, and its inputs: what a narrower run is held against."""
    from compiler.onnx_types import data_type_of
    from generators.widening import CannotWiden, Wide, widen_model

    try:
        narrow = widen_model(model, Wide(data_type_of(dtype), dtype))
    except CannotWiden as error:
        raise NoReference(f"the model has no form in {dtype}: {error}") from error
    return narrow, {name: _as_type(dtype, array) for name, array in feeds.items()}


def _as_type(dtype: Any, array: Any) -> Any:  # noqa: ANN401 - arrays, and what passes as it is
    return array.astype(dtype) if getattr(array, "dtype", None) in ("float32", "float64") else array


def most_exact(model: ModelProto, feeds: Mapping[str, Any], reference: Sequence[Any]) -> Sequence[Any]:
    """Return what the reference's own error is measured from: the model in float64, of two forms the plausible one.

    Where there is none, onnxruntime with its optimizer: it orders its sums otherwise, and so shows their noise.
    """
    from reports.agreement import is_plausible

    for form in (_modern, lambda given: given):
        exact = run_exactly(form(model), feeds)
        if exact is not None and all(map(is_plausible, exact, reference)):
            return exact
    return run_onnxruntime(model, feeds, optimize=True)


def _modern(model: ModelProto) -> ModelProto:
    """Return the model at the newest opset, where onnx.reference errs least, or itself where that is not possible."""
    from onnx import defs, version_converter

    try:
        return version_converter.convert_version(model, defs.onnx_opset_version())
    except Exception as error:  # noqa: BLE001 - the converter lacks steps, and says so in many ways
        logging.getLogger(__name__).info("not converted to the newest opset: %s", error)
        return model


def load_model(model: Path, weights: Path | None = None, feeds: Mapping[str, Any] | None = None) -> ModelProto:
    """Read an ONNX file with its external data, or another framework's as the ONNX model that its graph is written as.

    `feeds` are inputs of the sizes to read it for, where a graph is for one set of sizes.
    """
    import onnx

    from compiler.frontends.door import caffe_files, is_tensorflow, is_torch

    if is_torch(model):
        from compiler.exporters.onnx import export_model
        from compiler.frontends.torch import import_torch

        return export_model(import_torch(model))
    if is_tensorflow(model):
        from compiler.exporters.onnx import export_model
        from compiler.frontends.tensorflow import import_tensorflow
        from compiler.ir import type_of

        types = {name: type_of(array) for name, array in (feeds or {}).items()}
        return export_model(import_tensorflow(model, types=types or None))
    files = caffe_files((model, weights) if weights is not None else model)
    if files is not None:
        from compiler.exporters.onnx import export_model
        from compiler.frontends.caffe import import_caffe

        return export_model(import_caffe(*files))

    return onnx.load(model)


def run_onnxruntime(model: ModelProto, feeds: Mapping[str, Any], *, optimize: bool = False) -> list[Any]:
    """Run the reference: one thread, and no optimizer, whose fusions are not always right. Raises `NoReference`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run(None, dict(feeds)))
    except Exception as error:  # onnxruntime's classes share no base of their own
        raise NoReference(f"onnxruntime does not run this model: {str(error).splitlines()[0]}") from error


def run_exactly(model: ModelProto, feeds: Mapping[str, Any]) -> list[Any] | None:
    """Run the model in float64 by ONNX's reference; None where that is not possible. It tells noise from error."""
    import numpy as np
    from onnx.reference import ReferenceEvaluator

    from generators.widening import FLOAT64, widen_model

    try:
        wide = widen_model(model, FLOAT64)
        floats = {value.name for value in wide.graph.input if value.type.tensor_type.elem_type == FLOAT64.onnx_type}
        widened = {name: np.asarray(array, np.float64) if name in floats else array for name, array in feeds.items()}
        return list(ReferenceEvaluator(wide).run(None, widened))
    except Exception as error:  # noqa: BLE001 - it lacks operators and refuses models in many ways; then there is none
        logging.getLogger(__name__).info("no exact reference: %s", error)
        return None
