"""Flops and bytes against closed forms."""

import numpy as np
import pytest
from onnx import helper as h

from compiler import api
from compiler.simulator.cost_analysis import cost_analysis


def graph_of(op_type, shapes, output, opset=20, **attributes):
    names = [f"x{index}" for index in range(len(shapes))]
    node = h.make_node(op_type, names, ["y"], **attributes)
    inputs = [h.make_tensor_value_info(name, 1, shape) for name, shape in zip(names, shapes, strict=True)]
    graph = h.make_graph([node], "g", inputs, [h.make_tensor_value_info("y", 1, output)])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=9)
    return api.compile(model).estimate().graph


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [((5, 7), (7, 3), (5, 3)), ((2, 5, 7), (2, 7, 3), (2, 5, 3)), ((1, 64), (64, 1), (1, 1))],
)
def test_a_product_of_matrices_is_two_flops_a_multiply_accumulate_and_accesses_its_operands_and_result(a, b, out):
    found = cost_analysis(graph_of("MatMul", [a, b], out))
    assert found.flops == 2 * np.prod(out) * a[-1]
    assert found.transcendentals == 0
    assert found.bytes_accessed == 4 * sum(np.prod(shape) for shape in (a, b, out))
    assert found.argument_bytes == 4 * (np.prod(a) + np.prod(b))
    assert found.output_bytes == 4 * np.prod(out)


def test_a_convolution_is_counted_by_its_windows():
    found = cost_analysis(graph_of("Conv", [(1, 8, 10, 10), (16, 8, 3, 3)], (1, 16, 8, 8)))
    assert found.flops == 2 * 16 * 8 * 8 * 8 * 9


def test_transcendental_functions_are_counted_apart():
    found = cost_analysis(graph_of("Exp", [(4, 6)], (4, 6)))
    assert (found.flops, found.transcendentals, found.bytes_accessed) == (0, 24, 2 * 24 * 4)


def test_what_moves_no_data_costs_nothing():
    graph = graph_of("Flatten", [(4, 6, 2)], (4, 12), axis=1)
    found = cost_analysis(graph)
    assert (found.flops, found.bytes_accessed, found.unknown) == (0, 0, 0)


def test_what_data_decides_is_not_known():
    x = h.make_tensor_value_info("x", 1, [4])
    graph = h.make_graph([h.make_node("NonZero", ["x"], ["y"])], "g", [x], [h.make_tensor_value_info("y", 7, [1, "n"])])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)
    found = cost_analysis(api.compile(model).graph)
    assert (found.unknown, found.flops, found.bytes_accessed) == (1, 0, 16)
