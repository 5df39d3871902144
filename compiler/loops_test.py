"""The loops of every operation that ONNX's node models come to, run point by point, give what evaluation gives."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import onnx
import pytest

from compiler.errors import OpatlasError
from compiler.frontends.onnx import import_model
from compiler.ir import Call, Kind, type_of
from compiler.ops import Composite, Operator
from compiler.ops.work_test import run_work
from compiler.passes.decompose import decompose

MOST_POINTS = 600
CASES_AN_OPERATOR = 2


def node_models():
    """The first few of ONNX's node cases for each of its operators, with input arrays."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [case for case in collect_testcases(None) if case.model is not None]
    cases.sort(key=lambda case: case.model.graph.node[0].op_type)
    for _, group in itertools.groupby(cases, key=lambda case: case.model.graph.node[0].op_type):
        for case in itertools.islice(group, CASES_AN_OPERATOR):
            yield case.name, case.model, [array_of(item) for item in case.data_sets[0][0]]


def array_of(item):
    if isinstance(item, onnx.TensorProto):
        return onnx.numpy_helper.to_array(item)
    return item if item is None or isinstance(item, list) else np.asarray(item)


def graph_of(model, inputs):
    arrays = [item for item in inputs if isinstance(item, np.ndarray)]
    names = [value.name for value, item in zip(model.graph.input, inputs, strict=False) if isinstance(item, np.ndarray)]
    return import_model(model, known=dict(zip(names, arrays, strict=True)))


def applications(graph, inputs):
    """Each operation without regions, composites decomposed, with its operands and results as arrays."""
    pending = [op for op in graph.walk() if isinstance(op.definition, Composite)]
    while pending:
        pending += [op for op in decompose(pending.pop()) or () if isinstance(op.definition, Composite)]
    known = dict(zip(graph.inputs, inputs, strict=True))
    for op in graph.ops:
        operands = [None if operand is None else known[operand] for operand in op.operands]
        if op.definition.terminator or op.regions or any(isinstance(operand, list) for operand in operands):
            return
        with np.errstate(all="ignore"):
            results = op.definition.evaluate(op.call(), operands, None)
        known.update(zip(op.results, results, strict=True))
        if any(isinstance(result, list | dict) for result in results):
            return
        if isinstance(op.definition, Operator):
            yield op, operands, [np.asarray(result) for result in results]


def close(found, expected):
    """Within the accuracy of numpy's functions in float32, or of one rounding in a narrower type."""
    element = type_of(expected).element
    if element.kind is Kind.STRING or not (element.is_float or element.kind is Kind.COMPLEX):
        return found.tolist() == expected.tolist()
    wide = np.complex128 if element.kind is Kind.COMPLEX else np.float64
    tolerance = {8: 0.3, 16: 0.02}.get(element.bits, 1e-4)
    return np.allclose(found.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance / 10, equal_nan=True)


@pytest.mark.slow
def test_loops_of_imported_node_models_agree_with_evaluation():
    checked, wrong = set(), []
    for name, model, inputs in node_models():
        try:
            graph = graph_of(model, inputs)
        except OpatlasError:
            continue
        for op, operands, results in applications(graph, inputs):
            types = [type_of(result) for result in results]
            call = Call([None if o is None else type_of(o) for o in operands], op.attributes, operands)
            work = op.definition.work(call, tuple(types))
            if work is None or sum(nest.points for nest in work) > MOST_POINTS:
                continue
            found = run_work(work, operands, types)
            checked.add(op.name)
            if not all(map(close, found, results)):
                wrong.append((name, op.name))
    assert not wrong
    assert len(checked) >= 80
