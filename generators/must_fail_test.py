"""Broken models: stable ids, and each really broken by ONNX's own account where ONNX has one."""

import re
from collections import Counter, defaultdict

import onnx
import pytest

from generators.broken_nodes import RULES
from generators.must_fail import build_must_fail, must_fail_models

MODELS = list(must_fail_models())
BY_RULE = defaultdict(list)
for _case in MODELS:
    BY_RULE[_case.rule].append(_case)
SILENT = {
    "attribute-no-such-choice", "attribute-no-such-last-choice", "axis-too-large", "axis-too-small", "types-mixed",
    "sizes", "rank", "structure",
}  # fmt: skip
"""Rules that onnx's checker and shape inference check for some operators alone."""


def refused(model):
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:  # noqa: BLE001 - the checker raises several kinds, some without a common base
        return True
    return False


def test_there_are_more_than_500_models_of_all_rules():
    assert len(MODELS) >= 2000
    assert set(RULES) < set(BY_RULE)


def test_ids_are_unique_stable_and_fit_for_files():
    ids = [case.id for case in MODELS]
    assert max(Counter(ids).values()) == 1
    assert ids == [case.id for case in must_fail_models()]
    assert all(re.fullmatch(r"[\w.,=+~-]+", one) and len(one) < 150 for one in ids)


def test_each_says_its_rule_and_a_diagnosis():
    for case in MODELS:
        assert len(case.statement.split()) > 3, case.id
        assert case.diagnosis in {"InvalidModel", "TypeMismatch", "InvalidAttribute", "UnsupportedOperator"}


@pytest.mark.parametrize("rule", sorted(set(BY_RULE) - SILENT))
def test_onnx_refuses_what_breaks_a_rule_that_it_checks(rule):
    sample = BY_RULE[rule][:: max(1, len(BY_RULE[rule]) // 12)]
    accepted = [case.id for case in sample if not refused(build_must_fail(case)[0])]
    # onnx looks at no type of an operator without shape inference, and reads the elements that it needs of weights.
    assert len(accepted) <= len(sample) // 3, accepted


def test_a_model_is_valid_but_for_the_one_change():
    case = next(one for one in MODELS if one.id == "attribute-unknown-Relu-14")
    model, inputs = build_must_fail(case)
    assert refused(model)
    del model.graph.node[0].attribute[:]
    assert not refused(model)
    assert inputs is not None
