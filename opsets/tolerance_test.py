import pytest

from opsets import tolerance
from opsets.tolerance import parse_tolerance


@pytest.mark.parametrize("text", ["exact", "ulp(0.5)", "abs_error(tanh)", "dot_product", "dot_product(bias)"])
def test_the_text_form_survives(text):
    assert str(parse_tolerance(text)) == text


@pytest.mark.parametrize("text", ["", "ulp", "exact(1)", "ulp(1, 2)", "rtol(1e-3)", "ulp(1"])
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match="tolerance"):
        parse_tolerance(text)


def test_the_name_of_an_attribute_takes_the_value_of_the_case():
    found = parse_tolerance("row_relative(4, axis)")
    assert str(found.resolved({"axis": -2, "epsilon": 1e-5})) == "row_relative(4, -2)"
    assert str(parse_tolerance("dot_product(bias)").resolved({"axis": 1})) == "dot_product(bias)"


def test_a_class_is_found_by_operator_version_and_type():
    assert str(tolerance("Add", 14, "float32")) == "ulp(0.5)"
    assert str(tolerance("Add", 14, "int8")) == "exact"
