import onnx.defs
import pytest

from opsets import ManifestError, denominator, find_item
from opsets.elements import element_of


def schemas():
    return [s for s in onnx.defs.get_all_schemas_with_history() if not s.domain and not s.deprecated]


def test_pairs_are_those_of_the_schema():
    assert set(denominator().pairs) == {(schema.name, schema.since_version) for schema in schemas()}
    assert len(denominator().pairs) == len(schemas())


def test_cells_are_element_types_that_any_input_allows():
    expected = set()
    for schema in schemas():
        formals = schema.inputs or schema.outputs
        for text in (text for formal in formals for text in formal.types):
            expected.add((schema.name, schema.since_version, element_of(text)))
    found = [(cell.operator, cell.since_version, cell.dtype) for cell in denominator().cells]
    assert set(found) == expected
    assert len(found) == len(expected)


def test_attributes_are_those_of_each_version():
    expected = {(schema.name, schema.since_version, name) for schema in schemas() for name in schema.attributes}
    found = {(one.operator, one.since_version, one.attribute) for one in denominator().attributes}
    assert found == expected


def test_the_newest_version_is_marked():
    newest = {(cell.operator, cell.since_version) for cell in denominator().cells if cell.newest}
    assert ("Add", 14) in newest
    assert ("Add", 13) not in newest


def test_what_no_manifest_has_is_still_counted():
    missing = set(denominator().pairs) - {("Add", 14)}
    assert missing
    with pytest.raises(ManifestError, match=r"no entry for ai.onnx Nothing-1"):
        find_item("onnx", "ai.onnx", "Nothing", 1)


def test_a_framework_without_a_schema_is_refused():
    with pytest.raises(ManifestError, match="found framework 'torch'"):
        denominator("torch")
