import numpy as np

from compiler.frontends.onnx.fold import Folder
from compiler.ir import F32, Builder, Graph, tensor
from compiler.ops.creation import Fill
from compiler.ops.elementwise import Add, Div, Mul
from compiler.ops.indexing import Gather
from compiler.ops.sampling import RandomUniform
from compiler.ops.shape import ShapeOf, SizeOf


def builder_with(*dims):
    graph = Graph("g", [tensor(F32, dims)], ["x"])
    return Builder(graph), graph.inputs[0]


def test_constants_are_known_and_inputs_are_not():
    b, x = builder_with(2, 3)
    one = b.constant(np.array([1]))
    assert Folder().known(one).tolist() == [1]
    assert Folder().known(x) is None


def test_sizes_are_known_where_types_say_them():
    b, x = builder_with(2, 3)
    shape = b(ShapeOf, x)
    total = b(Mul, b(Gather, shape, b.constant(np.array(1)), axis=0), b(SizeOf, x))
    assert Folder().known(total) == 18


def test_symbolic_sizes_are_not_known():
    b, x = builder_with("N", 3)
    assert Folder().known(b(ShapeOf, x)) is None
    assert Folder().known(b(ShapeOf, x, start=1)).tolist() == [3]


def test_what_depends_on_an_input_names_it():
    b, x = builder_with(2)
    half = b(Div, b(Add, x, b.constant(np.ones(2, np.float32))), b.constant(np.full(2, 2, np.float32)))
    folder = Folder()
    assert folder.known(half) is None
    assert folder.undecided_input(half) is x


def test_large_values_are_left_alone():
    b, _ = builder_with(2)
    shape = b.constant(np.array([2**20, 2**20]))
    assert Folder().known(b(Fill, shape, b.constant(np.array(0.0)))) is None
    computed = b(Mul, shape, b.constant(np.array(2)))
    filled = b(Fill, computed, b.constant(np.array(0.0)))
    assert Folder().known(filled) is None


def test_random_numbers_are_never_known():
    b, _ = builder_with(2)
    assert Folder().known(b(RandomUniform, b.constant(np.array([2])), to=F32)) is None


def test_long_chains_need_no_deep_stack():
    b, _ = builder_with(2)
    value = b.constant(np.array(0))
    one = b.constant(np.array(1))
    for _ in range(3000):
        value = b(Add, value, one)
    assert Folder().known(value) == 3000
