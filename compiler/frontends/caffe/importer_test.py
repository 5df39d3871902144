import numpy as np
import pytest

from compiler.errors import InvalidModel, UnsupportedOperator
from compiler.frontends.caffe import import_caffe
from compiler.frontends.caffe.harness_test import draw, inputs, run, weights

CONV = """
name: "net"
layer { name: "data" type: "Input" top: "a" input_param { shape { dim: 1 dim: 2 dim: 5 dim: 5 } } }
layer { name: "conv" type: "Convolution" bottom: "a" top: "c" convolution_param { num_output: 3 kernel_size: 3 } }
"""


def relu(name, bottom, top):
    return f'layer {{ name: "{name}" type: "ReLU" bottom: "{bottom}" top: "{top}" }}\n'


def test_readers_before_an_in_place_layer_see_the_old_value():
    x = np.array([[-1.0, 2.0]], np.float32)
    text = inputs((1, 2)) + 'layer { name: "neg" type: "Power" bottom: "a" top: "n" power_param { scale: -1 } }\n'
    text += 'layer { name: "early" type: "AbsVal" bottom: "n" top: "early" }\n'
    text += relu("r", "n", "n") + relu("late", "n", "late")
    early, late = run(text, None, x)
    np.testing.assert_array_equal(early, [[1, 2]])
    np.testing.assert_array_equal(late, [[1, 0]])


def test_a_branch_taken_after_in_place_layers_has_their_value_and_one_before_does_not():
    x = np.array([[-1.0, 2.0]], np.float32)
    text = inputs((1, 2)) + 'layer { name: "s" type: "Split" bottom: "a" top: "p" top: "q" }\n'
    text += relu("r", "p", "p") + 'layer { name: "e" type: "Eltwise" bottom: "p" bottom: "q" top: "e" }\n'
    np.testing.assert_array_equal(run(text, None, x)[0], [[-1, 4]])


def test_outputs_are_in_alphabetical_order_as_caffe_has_them():
    graph = import_caffe(inputs((1, 2)) + relu("r", "a", "z") + relu("s", "a", "b"))
    assert graph.output_names == ("b", "z")


def test_silence_takes_a_blob_from_the_outputs():
    text = inputs((1, 2)) + relu("r", "a", "z") + relu("s", "a", "b")
    assert import_caffe(text + 'layer { name: "q" type: "Silence" bottom: "b" }').output_names == ("z",)


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ("include { phase: TEST }", True),
        ("include { phase: TRAIN }", False),
        ("exclude { phase: TEST }", False),
        ("exclude { phase: TRAIN }", True),
        ('include { stage: "deploy" }', False),
        ('include { not_stage: "deploy" }', True),
        ("include { min_level: 1 }", False),
        ("include { phase: TRAIN } include { max_level: 0 }", True),
    ],
)
def test_rules_choose_layers_of_phase_test(rule, kept):
    text = inputs((1, 2)) + f'layer {{ name: "r" type: "ReLU" bottom: "a" top: "b" {rule} }}'
    assert import_caffe(text).output_names == (("b",) if kept else ("a",))


def test_the_state_of_the_net_has_stages():
    text = 'state { stage: "deploy" level: 2 }' + inputs((1, 2))
    text += 'layer { name: "r" type: "ReLU" bottom: "a" top: "b" include { stage: "deploy" min_level: 2 } }'
    assert import_caffe(text).output_names == ("b",)


def test_the_first_format_reads_as_the_second():
    x, w, b = draw(1, 2, 5, 5), draw(3, 2, 3, 3), draw(3)
    old = """
    input: "a" input_dim: 1 input_dim: 2 input_dim: 5 input_dim: 5
    layers { name: "conv" type: CONVOLUTION bottom: "a" top: "c" blobs_lr: 1
             convolution_param { num_output: 3 kernel_size: 3 } }
    layers { name: "relu" type: RELU bottom: "c" top: "c" }
    """
    new = run(CONV + relu("relu", "c", "c"), weights(conv=[w, b]), x)[0]
    np.testing.assert_array_equal(run(old, weights(old=True, legacy=True, conv=[w, b.reshape(1, 1, 1, 3)]), x)[0], new)


def test_weights_with_four_old_dims_fit_matrices():
    x, w = draw(2, 6), draw(3, 6)
    text = inputs((2, 6)) + (
        'layer { name: "ip" type: "InnerProduct" bottom: "a" top: "y"'
        " inner_product_param { num_output: 3 bias_term: false } }"
    )
    np.testing.assert_allclose(run(text, weights(legacy=True, ip=[w]), x)[0], x @ w.T, rtol=1e-6, atol=1e-6)


def test_weights_are_shared_by_the_name_of_a_parameter():
    text = inputs((2, 6))
    for name, bottom in (("one", "a"), ("two", "a")):
        text += (
            f'layer {{ name: "{name}" type: "InnerProduct" bottom: "{bottom}" top: "{name}" param {{ name: "w" }}'
            " inner_product_param { num_output: 3 bias_term: false } }"
        )
    one, two = run(text, weights(one=[draw(3, 6)]), draw(2, 6))
    np.testing.assert_array_equal(one, two)


def test_unknown_fields_and_comments_are_passed_over():
    text = "# layer {\n" + CONV.replace("num_output", "future_field: 3 num_output")
    import_caffe(text, weights(conv=[draw(3, 2, 3, 3), draw(3)]))


@pytest.mark.parametrize(
    ("text", "model", "message"),
    [
        (CONV, None, r"layer 'conv' \(Convolution, line 4\): blob 0 \(weights\) is missing, expected shape \[3, 2,"),
        (CONV, {"other": [[1.0]]}, r"'conv' .* blob 0 \(weights\) is missing.* no weights for the layer of that name"),
        (CONV, {"conv": [draw(3, 2, 5, 5), draw(3)]}, r"'conv' .*blob 0 .*has shape \[3, 2, 5, 5\]; expected \[3, 2,"),
        (CONV, {"conv": [draw(3, 2, 3, 3)]}, r"'conv' .*blob 1 \(bias\) is missing, expected shape \[3\]; 1 given"),
        (inputs((1, 2)) + relu("r", "b", "c"), None, r"'r' \(ReLU, line 2\): bottom 'b' is unknown; blobs before it: "),
        (inputs((1, 2)) + relu("r", "a", "a2") + relu("s", "a", "a2"), None, r"'s' .* 'a2' is made before by layer"),
        (
            inputs((1, 2))
            + 'layer { name: "r" type: "Eltwise" bottom: "a" bottom: "d" top: "c" }\n'
            + relu("s", "c", "d"),
            None,
            r"layer 'r' \(Eltwise, line 2\): bottom 'd' closes a cycle of layers: 'r' -> 's' -> 'r'",
        ),
        (inputs((1, 2)) + relu("r", "c", "b") + relu("s", "a", "c"), None, r"'r' .*only further down, by layer 's'"),
        (inputs((1, 2)) + relu("r", "r", "r"), None, r"bottom 'r' is a cycle"),
        ("layer {\n name: }", None, r"2:8"),
        ("layer { } layers { }", None, r"both formats"),
        ('input: "a"\n' + relu("r", "a", "b"), None, r"input 'a': no shape"),
        (inputs((1, 2)) + 'layer { name: "r" type: "ReLU" top: "b" }', None, r"'r' .*0 bottoms; expected exactly 1"),
        (inputs((1, 2)) + 'layer { name: "r" type: "ReLU" bottom: "a" }', None, r"'r' .*0 tops; expected 1"),
        (inputs((1, 2)) + 'layer { type: "Silence" bottom: "a" }', None, r"no layer makes an output"),
    ],
)  # fmt: skip
def test_a_broken_network_is_refused_in_one_line(text, model, message):
    with pytest.raises(InvalidModel, match=message) as found:
        import_caffe(text, None if model is None else weights(**model))
    assert "\n" not in found.value.message


def test_bytes_that_are_no_caffemodel_are_refused(tmp_path):
    for data in (b"", b"\x00", b"PK\x03\x04" * 9, CONV.encode()):
        with pytest.raises(InvalidModel, match="caffemodel"):
            import_caffe(CONV, data)
    with pytest.raises(InvalidModel, match=r"none\.prototxt: No such file"):
        import_caffe(tmp_path / "none.prototxt")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("SoftmaxWithLoss", "belongs to training"), ("Data", "reads data sets"), ("Own", "no conversion")],
)
def test_other_layers_are_refused_by_name_and_line(kind, reason):
    text = inputs((1, 2)) + f'layer {{ name: "x" type: "{kind}" bottom: "a" top: "b" }}'
    with pytest.raises(UnsupportedOperator, match=reason) as found:
        import_caffe(text)
    assert (found.value.domain, found.value.name, found.value.node) == ("caffe", kind, "x, line 2")
