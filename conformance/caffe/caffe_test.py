"""The oracles of Caffe networks, and whether the suite sees a frontend that errs."""

import numpy as np
import pytest

from compiler.frontends.caffe.reader import read_weights
from compiler.frontends.caffe.site import converted_layers
from conformance.backends.opatlas import create
from conformance.caffe.definitions import DEFINITIONS
from conformance.judge import judge_case
from conformance.suites import caffe_operators
from conformance.tolerance_names import parse_tolerance
from generators import caffe, caffemodel
from opsets.caffe import known_layers, scope
from reports.record import Outcome

pytest.importorskip("cv2", reason="needs OpenCV: pip install 'opatlas[caffe]'")


class _Suite:
    def load(self, info):
        return caffe_operators.load(info.source)


def judged(case):
    return judge_case(caffe_operators.describe(case, "operators"), _Suite(), create("reference-npu"), lambda _: None)


def first(name, **wanted):
    found = (case for case in caffe.expand(name) if all(case.settings.get(k) == v for k, v in wanted.items()))
    return next(found)


def test_every_layer_in_scope_has_a_definition_and_all_but_inputs_a_converter():
    assert set(DEFINITIONS) == set(known_layers())
    assert set(converted_layers()) == set(known_layers()) - {"Input"}


def test_every_layer_has_a_tolerance_class_that_is_defined():
    for case in caffe.cases():
        parse_tolerance(caffe.tolerance(case))


@pytest.mark.parametrize("name", sorted(scope().excluded))
def test_layers_out_of_scope_are_refused_by_name(name):
    from compiler.errors import UnsupportedOperator
    from compiler.frontends.caffe import import_caffe

    with pytest.raises(UnsupportedOperator, match=rf"caffe\.{name} "):
        import_caffe(f'input: "a" input_shape {{ dim: 1 }}\nlayer {{ name: "x" type: "{name}" bottom: "a" top: "b" }}')


@pytest.mark.parametrize("old", [False, True])
def test_weights_that_are_written_by_hand_read_back_through_protobuf(old):
    given = {"one": [np.arange(6, dtype=np.float32).reshape(1, 2, 3)], "two": [np.ones(2, np.float32)] * 2}
    found = read_weights(caffemodel.caffemodel(given, old=old))
    assert list(found) == ["one", "two"]
    for name, arrays in given.items():
        for blob, array in zip(found[name], arrays, strict=True):
            assert blob.legacy is old
            np.testing.assert_array_equal(blob.data.reshape(array.shape), array)


@pytest.mark.parametrize("name", ["Convolution", "Pooling", "Eltwise", "LSTM", "DetectionOutput"])
def test_a_case_passes(name):
    assert judged(next(caffe.expand(name))).outcome is Outcome.PASSED


def test_the_suite_sees_a_pool_that_rounds_down(monkeypatch):
    from compiler.frontends.caffe.layers import pooling

    right = pooling.Axis.of.__func__

    def wrong(cls, *sizes, floor, clip):
        del floor
        return right(cls, *sizes, floor=True, clip=clip)

    monkeypatch.setattr(pooling.Axis, "of", classmethod(wrong))
    outcome = judged(first("Pooling", pool="MAX", kernel_size=2, stride=2)).outcome
    assert outcome in {Outcome.WRONG_RESULT, Outcome.UNVERIFIED}


def test_the_suite_sees_a_mean_over_the_wrong_count(monkeypatch):
    from compiler.frontends.caffe.layers import pooling

    right = pooling.Axis.lengths.fget
    monkeypatch.setattr(pooling.Axis, "lengths", property(lambda self: np.full_like(right(self), self.kernel)))
    case = next(
        case
        for case in caffe.expand("Pooling")
        if {"pool": "AVE", "kernel_size": 3, "stride": 2}.items() <= case.settings.items()
    )
    assert judged(case).outcome is Outcome.WRONG_RESULT


def test_opencv_and_the_definition_vote_where_both_can():
    words = judged(next(caffe.expand("Convolution"))).judgement.oracles
    assert (words["native"], words["native-widened"], words["onnxruntime"]) == ("agrees", "agrees", "agrees")
