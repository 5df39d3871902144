import pytest
import yaml

from opsets.errors import ManifestError
from opsets.torch_manifest import CORE, core_overloads, covered_operators, load_torch_manifests, torch_item

ENTRY = """
framework: torch
family: test
operators:
  relu: {forward: torch.relu(x), tolerance: exact%s}
"""


def loaded(folder, text):
    (folder / "test.yaml").write_text(text, encoding="utf-8")
    return load_torch_manifests(folder)


def test_an_entry_has_a_class_for_each_of_its_types(tmp_path):
    (item,) = loaded(tmp_path, ENTRY % "")
    assert str(item.tolerance("bfloat16")) == "exact"


def test_a_type_without_a_class_is_refused(tmp_path):
    text = ENTRY.replace("tolerance: exact", "tolerance: {float: exact}") % ", types: real"
    with pytest.raises(ManifestError, match=r"relu\.tolerance: found no class for int64"):
        loaded(tmp_path, text)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (", kind: 3", "kind: Extra inputs are not permitted, found '3'"),
        (", types: reals", "types: found 'reals', expected one of float"),
        (", data: [strange]", "data.0: Input should be"),
    ],
)
def test_what_is_wrong_is_one_line_with_file_and_key(tmp_path, extra, message):
    with pytest.raises(ManifestError) as caught:
        loaded(tmp_path, ENTRY % extra)
    text = str(caught.value)
    assert message in text
    assert "relu" in text
    assert "test.yaml" in text
    assert "\n" not in text


def test_an_operator_with_two_entries_is_refused(tmp_path):
    (tmp_path / "other.yaml").write_text(ENTRY % "", encoding="utf-8")
    with pytest.raises(ManifestError, match="'relu' has two entries"):
        loaded(tmp_path, ENTRY % "")


def test_an_unknown_operator_is_named():
    with pytest.raises(ManifestError, match="found no operator 'reluu'"):
        torch_item("reluu")


def test_every_core_operator_of_torch_has_an_entry():
    torch = pytest.importorskip("torch")
    names = {schema.name.removeprefix("aten::") for schema in torch._C._jit_get_all_schemas()}
    tagged = set()
    for name in names:
        packet = getattr(torch.ops.aten, name, None)
        overloads = packet.overloads() if packet is not None and "::" not in name else ()
        tagged |= {f"{name}.{one}" for one in overloads if torch.Tag.core in getattr(packet, one).tags}
    core = {name.partition(".")[0] for name in tagged}
    assert (len(core), len(tagged)) == (164, 193)
    if torch.__version__.startswith(yaml.safe_load(CORE.read_text(encoding="utf-8"))["torch"]):
        assert set(core_overloads()) == tagged
    assert core <= covered_operators()
