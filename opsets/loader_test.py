from textwrap import dedent

import pytest

from opsets import ManifestError, load_manifest, load_manifests
from opsets.elements import GROUP_OF

GOOD = """
framework: onnx
family: test
operators:
  Softmax:
    tolerance: ulp(4)
    shapes: [[[2, 3]]]
    grid: {axis: [~, 0]}
"""


def load(tmp_path, text):
    path = tmp_path / "family.yaml"
    path.write_text(dedent(text), encoding="utf-8")
    return load_manifest(path)


def message(tmp_path, text):
    with pytest.raises(ManifestError) as caught:
        load(tmp_path, text)
    found = str(caught.value)
    assert "\n" not in found
    assert str(tmp_path / "family.yaml") in found
    return found


def test_an_entry_becomes_one_item_a_version(tmp_path):
    items = load(tmp_path, GOOD).items
    assert [item.since_version for item in items] == [1, 11, 13]
    assert [item.newest for item in items] == [False, False, True]
    assert items[0].opset == 1
    assert items[-1].opset >= 28


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ("    tolerance:", "    tolerence:", 6, "operators.Softmax.tolerence: found 'ulp(4)'"),
        ("ulp(4)", "ulp", 6, "found 0 arguments, expected 1"),
        ("ulp(4)", "close", 6, "tolerance 'close' is unknown"),
        ("Softmax:", "Softmaks:", 5, "found operator 'Softmaks'"),
        ("grid: {axis", "grid: {axes", 8, "found 'axes', expected an attribute, input or parameter: axis, input"),
        (
            "[[[2, 3]]]",
            "[[[2, x.y]]]",
            7,
            "shapes.0.0.1: found 'x.y', 'x.y': Attribute is not part of the expression language",
        ),
        ("[[[2, 3]]]", "seven", 7, "found 'seven'"),
        ("axis: [~, 0]", "axis: 0", 8, "grid.axis: found 0"),
        ("family: test", "famly: test", 3, "famly: found 'test'"),
        ("    grid:", "    where: ['axis < rnk(input)']\n    grid:", 8, "unknown function"),
        ("    grid:", "    where: ['axes < 3']\n    grid:", 8, "found name 'axes', expected one of"),
        ("    grid:", "    shapes: [[[1]]]\n    grid:", 8, "found the key twice"),
        ("    grid:", "    versions: {abc: {}}\n    grid:", 8, "expected a range of versions such as 7, 1-6 or 13+"),
        ("    grid:", "    versions: {'13': {gird: {}}}\n    grid:", 5, "gird"),
        ("    grid:", "    types: {TT: [float32]}\n    grid:", 8, "expected a type parameter: T"),
        ("    grid:", "    dtype: TT\n    grid:", 8, "expected a type parameter: T"),
        ("framework: onnx", "framework: onyx", 2, "framework: found 'onyx'"),
        ("family: test", "family: [", 5, "found no valid YAML"),
    ],
)
def test_a_mistake_is_one_line_with_file_line_and_key(tmp_path, old, new, line, expected):
    assert old in GOOD
    found = message(tmp_path, GOOD.replace(old, new, 1))
    assert expected in found
    assert f"family.yaml:{line}:" in found


def test_a_required_attribute_needs_a_value(tmp_path):
    text = """
    framework: onnx
    family: test
    operators:
      Concat: {tolerance: exact, shapes: [[[2], [2]]]}
    """
    assert "found no value for attribute 'axis', expected one: it is required" in message(tmp_path, text)


def test_an_attribute_of_other_versions_is_left_out(tmp_path):
    text = """
    framework: onnx
    family: test
    operators:
      MaxPool:
        tolerance: exact
        shapes: [{X: [1, 1, 4, 4], kernel_shape: [2, 2], ceil_mode: 1}]
    """
    by_version = {item.since_version: item for item in load(tmp_path, text).items}
    assert "ceil_mode" not in by_version[8].settings
    assert "ceil_mode" in by_version[10].settings


def test_versions_override_key_by_key(tmp_path):
    text = GOOD + "    versions: {'1-11': {grid: {axis: [1]}, data: [ties]}}\n"
    items = {item.since_version: item.entry for item in load(tmp_path, text).items}
    assert items[11].grid == {"axis": [1]}
    assert items[11].data == ["ties"]
    assert items[13].grid == {"axis": [None, 0]}


def test_an_operator_newer_than_the_installed_onnx_is_passed_over(tmp_path):
    text = GOOD + "  Futurism: {since: 999, tolerance: exact}\n"
    assert {item.operator for item in load(tmp_path, text).items} == {"Softmax"}


def test_an_unknown_framework_is_refused():
    with pytest.raises(ManifestError, match=r"'mxnet' has no manifests, expected one of .*onnx"):
        load_manifests("mxnet")


def test_each_item_names_a_class_for_each_type_that_it_reaches():
    for manifest in load_manifests("onnx"):
        for item in manifest.items:
            parameter = item.dtype_parameter
            allowed = item.signature.types[parameter] if parameter else item.signature.elements[:1]
            for element in item.entry.types.get(parameter or "", allowed):
                if element in allowed:
                    assert str(item.tolerance(element))


def test_no_class_is_no_default(tmp_path):
    item = load(tmp_path, GOOD.replace("ulp(4)", "{int: exact}")).items[0]
    assert GROUP_OF["float32"] == "float"
    with pytest.raises(ManifestError, match="found no class for float32"):
        item.tolerance("float32")


def test_a_class_for_one_type_comes_before_that_of_its_group(tmp_path):
    item = load(tmp_path, GOOD.replace("ulp(4)", "{float: ulp(4), float16: exact}")).items[0]
    assert str(item.tolerance("float16")) == "exact"
    assert str(item.tolerance("float32")) == "ulp(4)"
