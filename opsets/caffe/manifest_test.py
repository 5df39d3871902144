import pytest

from opsets import ManifestError
from opsets.caffe import known_layers, load_layers, manifest, scope


def test_every_layer_in_scope_has_an_entry_and_no_entry_is_out_of_scope():
    assert set(load_layers()) == set(known_layers())


def test_layers_left_out_have_a_reason_and_are_not_in_scope():
    assert all(scope().excluded.values())
    assert not set(scope().excluded) & set(known_layers())


def test_types_of_the_first_format_are_named_once():
    names = [layer.v1 for layer in load_layers().values() if layer.v1]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("framework: caffe\nfamily: f\nlayers: {X: {rows: [], tolerance: nonsense}}", "tolerance.*'nonsense'"),
        ("framework: caffe\nfamily: f\nlayers: {X: {rows: [], tolerance: exact, grit: {}}}", "grit"),
        ("framework: caffe\nfamily: f\nlayers: {X: {rows: [], tolerance: exact, where: ['import os']}}", "where"),
        ("framework: [", "no valid YAML"),
    ],
)
def test_a_manifest_that_breaks_its_form_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError, match=message) as found:
        manifest._read(path)
    assert "\n" not in str(found.value)
