import ast

import numpy as np
import pytest

from generators import caffe
from generators.render import reproducer_scope
from opsets.caffe import known_layers, load_layers

CASES = list(caffe.cases())


def test_every_layer_has_cases_with_ids_of_their_own():
    assert {case.operator for case in CASES} == set(known_layers())
    assert len({case.id for case in CASES}) == len(CASES) >= 400


def test_every_field_of_every_entry_is_set_in_some_case():
    for name, layer in load_layers().items():
        wanted = {*layer.grid, *(key for row in layer.rows for key in row)} - {"bottoms"}
        assert wanted == {key for case in caffe.expand(name) for key, _ in case.attributes}


def test_each_case_in_the_first_format_has_a_twin_in_the_second():
    ids = {case.id for case in CASES}
    old = [case for case in CASES if case.since_version == 1]
    assert len(old) == sum(1 for layer in load_layers().values() if layer.v1)
    assert all(case.id.replace("-1-float32", "-2-float32") in ids for case in old)


@pytest.mark.parametrize("name", ["Convolution", "Input", "LSTM", "DummyData"])
def test_a_reproducer_stands_alone_and_makes_the_case(name):
    case = next(caffe.expand(name))
    scope, built = reproducer_scope(caffe.render(case)), caffe.build(case)
    assert scope["PROTOTXT"] == built.prototxt
    for key, value in scope["make_inputs"]().items():
        np.testing.assert_array_equal(value, built.inputs[key])
    if built.caffemodel is not None:
        assert scope["caffemodel"](scope["make_weights"](), old=scope["OLD"]) == built.caffemodel


@pytest.mark.parametrize("name", ["lenet", "ssd"])
def test_a_network_renders_to_source_with_seeded_weights(name):
    case = caffe.net_case(name)
    ast.parse(caffe.render(case))
    assert caffe.build(case).caffemodel == caffe.build(case).caffemodel


def test_numbers_of_seven_bits_a_byte_are_written_lowest_first():
    # 300 is the example of protobuf's own documentation of its encoding.
    assert caffe.caffemodel.varint(300) == b"\xac\x02"
