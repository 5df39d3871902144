import subprocess
import sys

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="the tests of the TensorFlow frontend need TensorFlow")

from compiler import api  # noqa: E402
from compiler.errors import InvalidModel, UnsupportedOperator, UnsupportedType  # noqa: E402
from compiler.frontends.tensorflow import import_tensorflow, program_of  # noqa: E402
from compiler.frontends.tensorflow.harness_test import check, same, traced  # noqa: E402

X = np.arange(12.0, dtype=np.float32).reshape(3, 4) - 5.5


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    class Model(tf.Module):
        def __init__(self):
            self.w = tf.Variable(tf.reshape(tf.range(8.0), [4, 2]))

        @tf.function
        def forward(self, z, a):
            return {"scaled": tf.linalg.matmul(z, self.w) * a, "fixed": z - 1.0}

    model = Model()
    path = tmp_path_factory.mktemp("saved") / "model"
    signature = model.forward.get_concrete_function(tf.TensorSpec([None, 4], name="z"), tf.TensorSpec([2], name="a"))
    tf.saved_model.save(model, str(path), signatures=signature)
    tf.saved_model.save(model, str(path.with_name("bare")))
    return path


def test_outputs_come_in_the_flattened_order_of_the_framework():
    graph = check(lambda x, y: {"b": x + y, "a": (x - y, [x * y])}, X, X[:1])
    assert [value.name for value in graph.inputs] == ["x", "y"]


def test_open_sizes_are_symbols_and_follow_the_inputs():
    concrete = traced(lambda x: tf.reshape(x, [tf.shape(x)[0] * 2, -1]), X, open_sizes=True)
    assert import_tensorflow(concrete).inputs[0].tensor.dims == ("x_0", 4)
    rows = np.ones((5, 4), np.float32)
    same(api.compile(concrete).run([rows]), [concrete(tf.constant(rows)).numpy()])


def test_nothing_is_folded_by_tensorflow():
    graph = import_tensorflow(traced(lambda x: tf.raw_ops.Mul(x=tf.raw_ops.Exp(x=tf.constant(1.0)), y=x), X))
    assert [op.name for op in graph.ops if not op.definition.holds_constant][:2] == ["exp", "mul"]


def test_weights_are_read_when_the_model_is():
    variable = tf.Variable([1.0, 2.0, 3.0, 4.0])
    concrete = traced(lambda x: x * variable, X)
    variable.assign([2.0, 2.0, 2.0, 2.0])
    same(api.compile(concrete).run([X]), [X * 2])


def test_captured_tensors_are_constants():
    table = tf.constant(X)
    check(lambda i: tf.gather(table, i), np.array([2, 0], np.int32))


@pytest.mark.parametrize("sign", [1, -1])
def test_both_branches(sign):
    check(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: (x + 1, x[0]), lambda: (x * 2, x[1])), sign * np.abs(X))


@pytest.mark.parametrize("place", [-1, 0, 1, 2, 9])
def test_a_case_outside_takes_the_last_branch(place):
    check(lambda i, x: tf.switch_case(i, [lambda: x, lambda: x * 2, lambda: x - 1]), np.int32(place), X)


def test_a_loop_over_a_counter_has_a_known_number_of_trips():
    def forward(x):
        return tf.while_loop(lambda i, v: i < 7, lambda i, v: (i + 2, v * 1.5 - 1), [1, x])

    graph = check(forward, X)
    (loop,) = [op for op in graph.ops if op.name == "loop"]
    assert loop.operands[1] is None
    assert loop.operands[0].op.attributes["value"].array == 3


def test_a_loop_that_data_ends():
    check(lambda x: tf.while_loop(lambda v: tf.reduce_max(v) < 100, lambda v: v * 1.5 + 1, [x]), X)


def test_a_loop_that_never_runs_gives_what_it_was_given():
    check(lambda x: tf.while_loop(lambda i, v: i < 0, lambda i, v: (i + 1, v * 2), [0, x]), X)


def test_lists_of_tensors_in_a_loop():
    def forward(x):
        source = tf.TensorArray(tf.float32, size=3).unstack(x)
        target = tf.TensorArray(tf.float32, size=3)

        def step(i, total, target):
            total += source.read(i)
            return i + 1, total, target.write(i, total * 2)

        _, total, target = tf.while_loop(lambda i, *_: i < 3, step, [0, tf.zeros([4]), target])
        return total, target.stack(), source.gather([2, 0]), target.size()

    check(forward, X)


def test_a_list_that_grows_and_shrinks():
    def forward(x):
        raw, shape = tf.raw_ops, {"element_shape": [4], "element_dtype": tf.float32}
        items = raw.EmptyTensorList(max_num_elements=-1, **shape)
        for place in (0, 2):
            items = raw.TensorListPushBack(input_handle=items, tensor=x[place])
        rest, last = raw.TensorListPopBack(input_handle=items, **shape)
        both = raw.TensorListConcatLists(input_a=items, input_b=rest, element_dtype=tf.float32)
        return last, raw.TensorListStack(input_handle=both, **shape), raw.TensorListLength(input_handle=both)

    check(forward, X)


def test_calls_are_inlined_and_keep_their_place():
    inner = tf.function(lambda v: tf.nn.relu(v) * 2)
    graph = check(lambda x: inner(x) + inner(x + 1), X)
    assert any("PartitionedCall: Relu (Relu)" in str(op.location) for op in graph.ops)


def test_a_saved_model_takes_its_signature_by_key(saved):
    compiled = api.compile(saved)
    assert compiled.input_names == ("a", "z")
    assert compiled.output_names == ("fixed", "scaled")
    factor = np.array([1, 10], np.float32)
    weights = np.arange(8, dtype=np.float32).reshape(4, 2)
    same(compiled.run([factor, X]), [X - 1, X @ weights * factor])


def test_a_frozen_graph_starts_at_its_placeholders(tmp_path):
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 4], "image")
        tf.nn.softmax(x @ tf.constant(np.eye(4, 3, dtype=np.float32)), name="scores")
    path = tmp_path / "frozen.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    compiled = api.compile(path)
    assert (compiled.input_names, compiled.output_names) == (("image",), ("scores",))
    same(compiled.run([X]), [tf.nn.softmax(X[:, :3]).numpy()])


def test_a_keras_model_and_its_files(tmp_path):
    keras = tf.keras
    a, b = keras.Input((8, 8, 3), name="left"), keras.Input((4,), name="right")
    y = keras.layers.Conv2D(4, 3, padding="same", activation="relu")(a)
    y = keras.layers.GlobalAveragePooling2D()(keras.layers.BatchNormalization()(y))
    model = keras.Model({"right": b, "left": a}, {"y": keras.layers.Dense(2)(y) + keras.layers.Dense(2)(b)})
    rng = np.random.default_rng(0)
    images, rows = rng.standard_normal((2, 8, 8, 3), np.float32), rng.standard_normal((2, 4), np.float32)
    expected = [model({"left": images, "right": rows}, training=False)["y"].numpy()]
    compiled = api.compile(model)
    assert compiled.symbols == ("batch",)
    same(compiled.run({"left": images, "right": rows}), expected)
    model.save(tmp_path / "model.keras")
    same(api.compile(tmp_path / "model.keras").run({"left": images, "right": rows}), expected)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN"])
def test_recurrent_layers_of_an_open_batch(kind):
    layer = getattr(tf.keras.layers, kind)(3, return_sequences=True)
    model = tf.keras.Sequential([tf.keras.Input((4, 2)), layer])
    x = np.random.default_rng(1).standard_normal((2, 4, 2), np.float32)
    same(api.compile(model).run([x]), [model(x).numpy()])


def test_a_function_with_example_inputs():
    same(api.compile(tf.function(lambda x: x * 2), inputs=[X]).run([X]), [X * 2])
    with pytest.raises(InvalidModel, match="comes without inputs"):
        api.compile(tf.function(lambda x: x * 2))


def test_a_write_to_a_variable_is_refused():
    count = tf.Variable(0.0)

    def forward(x):
        count.assign_add(1.0)
        return x * 2

    with pytest.raises(UnsupportedOperator, match=r"AssignAddVariableOp.*keeps no state"):
        import_tensorflow(traced(forward, X))


def test_an_unknown_operator_is_named_with_node_and_line():
    def forward(x):
        return tf.linalg.svd(x, name="split_up")[0]

    with pytest.raises(UnsupportedOperator, match=r"tf\.Svd \(node 'split_up at .*tensorflow_test\.py:\d+'\)"):
        import_tensorflow(traced(forward, X))


def test_a_form_that_the_graph_cannot_say_is_unsupported_and_not_invalid():
    with pytest.raises(UnsupportedOperator, match=r"tf\.Exp \(node 'Exp.*complex"):
        import_tensorflow(traced(tf.exp, X.astype(np.complex64)))


@pytest.mark.parametrize("dtype", [tf.string, tf.variant, tf.resource])
def test_inputs_of_other_types_are_refused(dtype):
    concrete = tf.function(lambda x: tf.zeros([2])).get_concrete_function(tf.TensorSpec([], dtype, name="words"))
    with pytest.raises(UnsupportedType, match=rf"input 'words' is of type {dtype.name}"):
        import_tensorflow(concrete)


def test_a_saved_model_without_a_signature_is_refused(saved):
    with pytest.raises(InvalidModel, match="has no signature; save it with"):
        program_of(saved.with_name("bare"))
    with pytest.raises(InvalidModel, match=r"no signature 'other'; expected one of \['serving_default'\]"):
        program_of(saved, name="other")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("broken.pb", b"\xff\xff\xff", "no GraphDef"),
        ("empty.pb", b"", "no GraphDef with nodes"),
        ("text.keras", b"not a zip", "no Keras model: a .keras file is a zip archive"),
        ("hollow.keras", b"PK\x05\x06" + bytes(18), "cannot be loaded by Keras"),
    ],
)
def test_broken_files_are_one_line(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidModel, match=message) as caught:
        program_of(tmp_path / name)
    assert "\n" not in caught.value.message


def test_folders_and_files_that_are_no_models_are_refused(tmp_path):
    with pytest.raises(InvalidModel, match=r"no SavedModel: it has no file saved_model\.pb"):
        program_of(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"\x00garbage")
    with pytest.raises(InvalidModel, match="cannot be loaded"):
        program_of(tmp_path)
    with pytest.raises(InvalidModel, match="does not exist"):
        program_of(tmp_path / "nothing.keras")


def test_a_graph_with_an_unknown_node_is_refused(tmp_path):
    definition = tf.compat.v1.GraphDef()
    node = definition.node.add()
    node.name, node.op = "x", "NoSuchOperator"
    with pytest.raises(InvalidModel, match=r"GraphDef given cannot be read: .*NoSuchOperator"):
        program_of(definition)


def test_frameworks_not_asked_for_are_not_imported():
    code = """
import sys
import compiler, opatlas
from compiler.api import compile
from onnx import TensorProto, helper
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
compile(helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])))
loaded = {"tensorflow", "keras", "torch", "jax"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)
