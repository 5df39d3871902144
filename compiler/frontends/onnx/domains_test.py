import pytest
from onnx import TensorProto, helper

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.frontends.onnx import import_model


def model(operator, *shapes, outputs=1, element=TensorProto.FLOAT, opset=22, **attributes):
    names = [f"x{index}" for index in range(len(shapes))]
    inputs = [
        helper.make_tensor_value_info(name, element, dims)
        for name, dims in zip(names, shapes, strict=True)
        if dims is not None
    ]
    given = [name if dims is not None else "" for name, dims in zip(names, shapes, strict=True)]
    results = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(operator, given, results, **attributes)
    declared = [helper.make_tensor_value_info(name, element, None) for name in results]
    graph = helper.make_graph([node], "g", inputs, declared)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def test_sizes_of_one_name_must_be_equal():
    # ONNX, GRU: B is [num_directions, 6 * hidden_size], W [num_directions, 3 * hidden_size, input_size]
    import_model(model("GRU", [3, 2, 4], [1, 15, 4], [1, 15, 5], [1, 30], hidden_size=5))
    with pytest.raises(TypeMismatch, match=r"input 3 of node 'y0' \(GRU\) has \[1, 29\]; expected \[D 2G\]"):
        import_model(model("GRU", [3, 2, 4], [1, 15, 4], [1, 15, 5], [1, 29], hidden_size=5))


def test_a_layout_moves_the_batch():
    shapes = ([2, 3, 4], [1, 15, 4], [1, 15, 5], None, None, [2, 1, 5])
    import_model(model("GRU", *shapes, hidden_size=5, layout=1))
    with pytest.raises(TypeMismatch, match="input 5"):
        import_model(model("GRU", *shapes, hidden_size=5))


def test_symbols_and_unknown_ranks_may_be_anything():
    import_model(model("RNN", ["t", "n", 4], [1, 5, "i"], [1, 5, 5], ["d", 10], hidden_size=5))


def test_a_rank_that_is_asked_for():
    with pytest.raises(TypeMismatch, match=r"input 2 of node 'y0' \(Conv\) has \[4, 1\]; expected \[M\]"):
        import_model(model("Conv", [1, 3, 8, 8], [4, 3, 3, 3], [4, 1]))


def test_a_text_that_is_no_choice():
    with pytest.raises(
        InvalidAttribute, match=r"'mode' of node 'y0' \(RoiAlign\) is 'median'; expected one of avg, max"
    ):
        import_model(_roi_align("median"))


def _roi_align(mode):
    made = model("RoiAlign", [1, 2, 8, 8], [3, 4], [3], mode=mode)
    made.graph.input[2].type.tensor_type.elem_type = TensorProto.INT64
    return made
