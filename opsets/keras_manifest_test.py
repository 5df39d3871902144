import inspect

import pytest

from opsets.errors import ManifestError
from opsets.keras_manifest import excluded_names, keras_names, load_keras_manifest


@pytest.mark.parametrize("kind", ["layers", "applications"])
def test_each_name_of_keras_has_an_entry_or_a_reason(kind):
    pytest.importorskip("tensorflow", reason="Keras runs on it here")
    keras = pytest.importorskip("keras", minversion="3.0", reason="holds the lists against keras.layers")
    module = getattr(keras, kind)
    wanted = inspect.isclass if kind == "layers" else inspect.isfunction
    names = {name for name in dir(module) if not name.startswith("_") and wanted(getattr(module, name))}
    if not keras.__version__.startswith("3.15"):
        pytest.skip(f"the lists are those of Keras 3.15, {keras.__version__} is installed")
    assert keras_names(kind) | set(excluded_names(kind)) == names
    assert not keras_names(kind) & set(excluded_names(kind))


def test_a_mistake_is_one_line_with_file_and_key(tmp_path):
    (tmp_path / "layers.yaml").write_text(
        "framework: tensorflow\nexcluded: {}\nlayers: {Dense: {inputs: [[2, 3]], option: [x]}}", encoding="utf-8"
    )
    with pytest.raises(ManifestError, match=r"layers\.yaml: layers\.Dense\.option: Extra inputs") as caught:
        load_keras_manifest("layers", tmp_path)
    assert "\n" not in str(caught.value)
