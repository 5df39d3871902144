# ruff: noqa: PLC3002 - writes as expressions, so that the forms stand beside each other

import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from compiler.errors import InvalidModel, UnsupportedOperator  # noqa: E402
from compiler.frontends.torch import import_exported_program, import_torch  # noqa: E402
from compiler.frontends.torch.harness_test import Function, check, exported  # noqa: E402

X = torch.arange(20.0).reshape(4, 5) - 7.5


def test_torch_is_not_imported_for_an_onnx_model():
    code = """
import sys
import onnx
from onnx import TensorProto, helper
from compiler.api import compile
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
compile(helper.make_model(graph))
assert "torch" not in sys.modules, "torch was imported"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_outputs_come_flattened_in_the_order_of_the_framework():
    def nested(x):
        return {"b": x + 1, "a": (x * 2, [x - 1])}, None

    graph = check(nested, X)
    assert len(graph.outputs) == 3


def test_weights_are_views_of_the_tensors_memory():
    module = torch.nn.Linear(5, 3)
    graph = import_exported_program(exported(module, X))
    arrays = [op.attributes["value"].array for op in graph.ops if op.definition.holds_constant]
    weight = next(array for array in arrays if array.shape == (3, 5))
    assert np.shares_memory(weight, module.weight.detach().numpy())


def test_symbols_keep_their_names_and_sizes_follow_the_inputs():
    def forward(x):
        return x.reshape(-1, x.shape[0] * 5), x.sum(1).repeat(2), x.new_zeros(x.shape[0] + 1)

    size = torch.export.Dim("size", min=2, max=64)
    program = exported(forward, X, dynamic_shapes=(({0: size},),))
    symbol = next(str(node.meta["val"].shape[0]) for node in program.graph.nodes if node.name.startswith("input"))
    graph = check(forward, X, given=[torch.randn(7, 5)], dynamic_shapes=(({0: size},),))
    assert graph.inputs[0].tensor.dims == (symbol, 5)


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: (lambda y: (y.view(-1)[3:7].fill_(1), y)[1])(x.clone()),
        lambda x: (lambda y: (y.t()[1].add_(2), y.diagonal().zero_(), y)[2])(x.clone()),
        lambda x: (lambda y, v: (v.mul_(3), y[0].add_(1), v, y)[2:])(*(lambda y: (y, y[1:3, 2:]))(x.clone())),
        lambda x: (lambda y: (y.transpose_(0, 1), y[1].zero_(), y)[2])(x.clone()),
        lambda x: (lambda y: ([r.add_(i) for i, r in enumerate(y.unbind(1))], y)[1])(x.clone()),
        lambda x: (lambda y: (y.__setitem__(x > 0, 0), y)[1])(x.clone()),
        lambda x: (lambda y: (y.__setitem__((slice(None), slice(0, 5, 2)), 4), y)[1])(x.clone()),
        lambda x: (x.add_(1), x * 2)[1],
    ],
    ids=["flat", "transposed", "slice", "transpose_", "unbind", "mask", "strided", "input"],
)
def test_writes_through_views_reach_all_that_share_the_memory(forward):
    check(forward, X)


def test_a_reshape_that_copies_is_no_view():
    def forward(x):
        y = x.clone()
        copied = y.t().reshape(-1)
        y[0] = 0
        return copied, y

    check(forward, X)


def test_a_program_from_a_file_sees_views_too(tmp_path):
    def forward(x):
        y = x.clone()
        y.reshape(-1)[2] = 9
        return y

    torch.export.save(exported(forward, X), tmp_path / "model.pt2")
    graph = import_torch(tmp_path / "model.pt2")
    from compiler.ops.interpreter import interpret

    np.testing.assert_array_equal(interpret(graph, [X.numpy()])[0], forward(X).numpy())


def test_a_buffer_that_is_written_to_is_refused_by_name():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count

    with pytest.raises(UnsupportedOperator, match=r"add_.*buffer 'count'.*keeps no state"):
        import_exported_program(exported(Counter(), torch.ones(3)))


def test_an_operator_without_conversion_is_named_with_its_node():
    with pytest.raises(UnsupportedOperator, match=r"aten\.linalg_ldl_factor_ex.*node 'linalg_ldl_factor_ex'"):
        import_exported_program(exported(lambda x: torch.linalg.ldl_factor_ex(x @ x.T)[0], X))


def test_what_is_missing_is_decomposed_for_that_node_alone():
    graph = check(lambda x: torch.nn.functional.huber_loss(x, x * 2) + x, X, tolerance=1e-5)
    assert any("huber_loss" in str(op.location) for op in graph.ops)


def test_a_graph_break_is_one_line():
    with pytest.raises(InvalidModel, match="Function cannot be exported by torch") as caught:
        import_torch(Function(lambda x: x + 1 if x.sum() > 0 else x), [X])
    assert "\n" not in caught.value.message


def test_a_module_without_inputs_is_refused():
    with pytest.raises(InvalidModel, match="Linear comes without inputs"):
        import_torch(torch.nn.Linear(2, 3))


def test_torchscript_is_refused_with_a_word_on_how_to_export(tmp_path):
    path = tmp_path / "scripted.pt"
    torch.jit.trace(torch.nn.Linear(5, 3), X).save(path)
    with pytest.raises(InvalidModel, match=r"TorchScript.*torch\.export\.save"):
        import_torch(path)


def test_a_state_dict_and_a_missing_file_are_refused(tmp_path):
    torch.save({"w": X}, tmp_path / "weights.pt")
    with pytest.raises(InvalidModel, match="weights alone"):
        import_torch(tmp_path / "weights.pt")
    with pytest.raises(InvalidModel, match="does not exist"):
        import_torch(tmp_path / "nothing.pt2")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_both_branches_of_a_cond(sign):
    def forward(x):
        return torch.cond(x.sum() > 0, lambda y: (y.sin(), y[0] * 2), lambda y: (y - 1, y[1] * 1), (x,))

    check(forward, X.abs(), given=[sign * X.abs()])


def test_a_while_loop():
    from torch._higher_order_ops import while_loop

    def forward(x):
        return while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * 2 - 1), (torch.tensor(0), x))

    check(forward, X)


def test_a_scan_carries_and_stacks():
    from torch._higher_order_ops import scan

    def forward(x):
        return scan(lambda c, y: (c + y, c * y), torch.zeros_like(x[0]), x)

    check(forward, X)


def test_running_statistics_are_not_dropped_silently():
    module = torch.nn.BatchNorm1d(5).train()
    with pytest.raises(UnsupportedOperator, match="keeps no state"):
        import_exported_program(exported(module, X))


def test_losses_come_through_decompositions():
    places = torch.tensor([1, 0, 4, 2])
    check(lambda x: torch.nn.functional.cross_entropy(x, places, label_smoothing=0.1), X, tolerance=1e-5)
    check(lambda x: torch.nn.functional.nll_loss(x, places, reduction="none"), X, tolerance=1e-5)
