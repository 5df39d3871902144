import ast

import pytest

from conformance.errors import BadSelection
from conformance.mutation.edits import ROOT, textual_edit
from conformance.mutation.generated import SHARES, generated_faults, modules_of
from conformance.mutation.handwritten import equivalent_reasons, handwritten_faults, reason_for
from conformance.mutation.sites import sites


def _texts(source):
    return {(site.kind, site.text) for site in sites(ast.parse(source))}


@pytest.mark.parametrize(
    ("source", "kind", "text"),
    [
        ("x = f(3)", "constant", "4"),
        ("x = f(0.5)", "constant", "1.0"),
        ("x = f(True)", "flag", "False"),
        ("x = a < b", "boundary", "(a <= b)"),
        ("x = a < b", "comparison", "(a > b)"),
        ("x = a == b", "comparison", "(a != b)"),
        ("x = a + b", "arithmetic", "(a - b)"),
        ("x = -a", "sign", "a"),
        ("x = not a", "not", "(a)"),
        ("x = a and b", "logic", "(a or b)"),
        ("x = f(a, key=b)", "keyword", "f(a)"),
        ("x = a[i:j]", "slice", "i:j + 1"),
    ],
)
def test_each_kind_of_place_gives_its_fault(source, kind, text):
    assert (kind, text) in _texts(source)


@pytest.mark.parametrize(
    "source",
    [
        "raise E(3)",
        "assert a < b",
        'x = f"{a + 1}"',
        "x: list[3]",
        "zip(a, strict=True)",
        "def __repr__(self): return 3",
    ],
)
def test_texts_assertions_and_annotations_are_left_alone(source):
    assert _texts(source) == set()


def test_the_draw_has_its_shares_and_is_the_same_each_time():
    shares = {"compiler/simulator": 6, "conformance": 4}
    faults = generated_faults(shares)
    assert [fault.id for fault in faults] == [fault.id for fault in generated_faults(shares)]
    assert [sum(fault.path.startswith(package) for fault in faults) for package in shares] == [6, 4]
    assert len({fault.id for fault in faults}) == 10
    assert sum(SHARES.values()) == 200


def test_a_generated_fault_changes_one_place_and_is_python():
    for fault in generated_faults({"conformance": 5}):
        ast.parse(fault.source())
        assert fault.source() != (ROOT / fault.path).read_text()
        assert fault.lines[0] <= fault.lines[-1]
        assert any(line.startswith("+") for line in fault.diff())


def test_no_test_is_a_place_for_faults():
    assert not [path for package in SHARES for path in modules_of(package) if path.endswith("_test.py")]


def test_the_thirty_handwritten_faults_fit_the_sources():
    faults = handwritten_faults()
    assert len({fault.id for fault in faults}) == 30
    for fault in faults:
        ast.parse(fault.source())
        assert fault.breaks


def test_a_text_that_stands_nowhere_is_refused_by_name():
    with pytest.raises(BadSelection, match=r"some-fault.*0 places"):
        textual_edit("conformance/errors.py", "no such text", "", "some-fault")


def test_an_equivalent_fault_is_told_by_its_diff():
    (fault, *_) = generated_faults({"conformance": 1})
    lines = [f"{line[0]} {line[1:].strip()}" for line in fault.diff()]
    assert reason_for(fault, [(fault.path, lines, "no result depends on it")]) == "no result depends on it"
    assert not reason_for(fault, [("another.py", lines, "no result depends on it")])


def test_every_equivalent_fault_has_a_reason():
    assert all(reason and path.endswith(".py") for path, _, reason in equivalent_reasons())
