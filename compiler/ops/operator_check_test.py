"""The check that every operator is held to: types, evaluation and loops against results that come from elsewhere."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from compiler.ir import Builder, Call, Graph, Kind, TensorType, tensor, type_of
from compiler.ops import lookup
from compiler.ops.work_test import run_work


def plain(array):
    """An array in a type that numpy compares: float64, complex, integers, objects."""
    kind = type_of(array).element
    return array.astype(np.float64) if kind.is_float else array.astype(np.int64) if kind.bits < 8 else array


def assert_same(found, expected, ulps, *, signed_zeros=False):
    """Equal element types and shapes, values within so many units of the expected one's last place; NaN equals NaN."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert type_of(found) is type_of(expected)
    if type_of(found).element.kind is Kind.STRING:
        assert found.tolist() == expected.tolist()
        return
    if ulps and type_of(found).element.is_float:
        info = ml_dtypes.finfo(expected.dtype)
        wide = plain(expected)
        finite = np.where(np.isfinite(wide), np.abs(wide), 0)
        _, exponents = np.frexp(np.maximum(finite, float(info.smallest_normal)))
        unit = np.ldexp(1.0, exponents - 1) * float(info.eps)
        with np.errstate(invalid="ignore"):
            error = np.abs(plain(found) - wide)
        same = (plain(found) == wide) | (np.isnan(plain(found)) & np.isnan(wide)) | (error <= ulps * unit)
        assert same.all(), f"{found} is not {expected}"
        return
    np.testing.assert_array_equal(plain(found), plain(expected))
    if signed_zeros:
        numbers = ~np.isnan(plain(expected))
        np.testing.assert_array_equal(np.signbit(plain(found))[numbers], np.signbit(plain(expected))[numbers])


def make_call(name, operands, attributes, *, known=True):
    definition = lookup(name)
    types = [None if operand is None else type_of(operand) for operand in operands]
    call = Call(types, definition.complete(attributes), list(operands) if known else None)
    definition.check(call)
    return definition, call


def symbolic(type_):
    """The type with a symbol a size: equal sizes have equal symbols, 1 stays."""
    return tensor(type_.element, [dim if dim == 1 else f"s{dim}" for dim in type_.dims])


def assert_covers(general, exact):
    """A type with symbols must hold for the exact one."""
    assert isinstance(general, TensorType)
    assert general.element is exact.element
    if general.dims is not None:
        assert len(general.dims) == len(exact.dims), f"{general} for {exact}"
        for dim, size in zip(general.dims, exact.dims, strict=True):
            assert dim in ("?", size, f"s{size}"), f"{general} for {exact}"


def check_inference(definition, call, results):
    """Inference is exact for what is known and never wrong for what is not."""
    value_slots = [index for index in range(len(call.types)) if definition.signature_operand(index).value]
    for values in (call.values, None):
        kept = [
            type_ if index in value_slots or type_ is None else symbolic(type_)
            for index, type_ in enumerate(call.types)
        ]
        blurred = [type_ if type_ is None else tensor(type_.element, None) for type_ in call.types]
        for types in (call.types, kept, blurred):
            shown = None if values is None else [v if i in value_slots else None for i, v in enumerate(values)]
            for general, exact in zip(definition.infer(Call(types, call.attributes, shown)), results, strict=True):
                assert_covers(general, exact)


def check(name, operands, *expected, ulps=0, signed_zeros=False, loops=True, **attributes):
    """Types, evaluation and loops of one application against expected results that come from elsewhere."""
    operands = [None if operand is None else np.asarray(operand) for operand in operands]
    definition, call = make_call(name, operands, attributes)
    results = [type_of(np.asarray(array)) for array in expected]
    for type_, exact in zip(definition.infer(call), results, strict=True):
        assert_covers(type_, exact)
    check_inference(definition, call, results)
    for found, wanted in zip(definition.evaluate(call, operands, None), expected, strict=True):
        assert isinstance(found, np.ndarray)
        assert_same(found, wanted, ulps, signed_zeros=signed_zeros)
    work = definition.work(call, tuple(results))
    assert (work is not None) == loops, "loops where none are expected, or none where they are"
    if work is not None:
        for found, wanted in zip(run_work(work, operands, results), expected, strict=True):
            assert_same(found, wanted, ulps, signed_zeros=signed_zeros)


def onnxruntime(operator, inputs, outputs=1, opset=21, **attributes):
    """What onnxruntime, without its optimizer, computes for one node."""
    import onnx
    import onnxruntime as ort

    given = [(f"x{index}", value) for index, value in enumerate(inputs) if value is not None]
    names = ["" if value is None else f"x{index}" for index, value in enumerate(inputs)]
    node = onnx.helper.make_node(operator, names, [f"y{index}" for index in range(outputs)], **attributes)
    values = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given
    ]
    made = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output]
    graph = onnx.helper.make_graph([node], "one_node", values, made)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(onnx.shape_inference.infer_shapes(model).SerializeToString(), options)
    return session.run(None, dict(given))


def decomposed(name, operands, attributes, types=None):
    """What the composite's decomposition computes, operation by operation, on inputs of these (or the exact) types."""
    graph = Graph("main", types or [type_of(operand) for operand in operands])
    builder = Builder(graph)
    op = builder.op(lookup(name), graph.inputs, **attributes)
    builder.before = op
    results = op.definition.decompose(op, builder)
    assert [value.type for value in results] == [value.type for value in op.results] or types
    known = dict(zip(graph.inputs, operands, strict=True))
    for step in graph.ops:
        if step is op:
            break
        call = Call([None if v is None else v.type for v in step.operands], step.attributes)
        found = step.definition.evaluate(call, [None if v is None else known[v] for v in step.operands], None)
        known.update(zip(step.results, found, strict=True))
    return [known[value] for value in results]


def check_composite(name, operands, *expected, ulps=0, types=None, **attributes):
    """Evaluation and decomposition of a composite."""
    check(name, operands, *expected, ulps=ulps, loops=False, **attributes)
    for found, wanted in zip(decomposed(name, operands, attributes, types), expected, strict=True):
        assert_same(found, wanted, ulps)
