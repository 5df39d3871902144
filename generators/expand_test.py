import re
import subprocess
import sys
import time
from collections import Counter, defaultdict

import pytest

from generators import case_by_id, expand, input_elements, names_of, set_attributes, special_elements
from generators.expand import applies
from opsets import ManifestError, denominator, find_item, load_manifest, load_manifests
from opsets.elements import GROUPS

CASES = [case for manifest in load_manifests("onnx") for case in expand(manifest)]


def test_the_floor_of_coverage_holds():
    assert len({case.operator for case in CASES}) >= 201
    assert len({(case.operator, case.since_version) for case in CASES}) >= 626
    assert len(CASES) >= 16_000


def test_a_whole_run_stays_affordable():
    assert len(CASES) <= 24_000


def test_ids_are_unique():
    twice = [identity for identity, count in Counter(case.id for case in CASES).items() if count > 1]
    assert twice == []


def test_ids_are_fit_for_files_and_shells():
    for case in CASES:
        assert re.fullmatch(r"[\w.,=+~-]+", case.id), case.id
        assert len(case.id) <= 180, case.id


def test_an_id_says_operator_version_type_class_and_mode():
    for case in CASES:
        domain = "" if case.domain == "ai.onnx" else f"{case.domain}-"
        assert case.id.startswith(f"onnx-{domain}{case.operator}-{case.since_version}-{case.dtype}")
        assert case.id.endswith(f"-{case.data_class}-{case.input_mode}")


def test_a_case_is_found_by_its_id():
    assert case_by_id(CASES[17].id) == CASES[17]
    with pytest.raises(ManifestError, match="found no case 'onnx-Nothing'"):
        case_by_id("onnx-Nothing")


def test_seeds_come_from_ids_and_not_from_order():
    assert len({case.seed for case in CASES}) == len(CASES)
    assert (
        next(case for case in CASES if case.id == "onnx-Abs-13-float32-3x4x5-random-static").seed
        == 15333091066816174548
    )


def test_expansion_is_the_same_in_another_process():
    code = (
        "from generators import expand; from opsets import load_manifests;"
        "print('\\n'.join(c.id for m in load_manifests('onnx') for c in expand(m)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == [case.id for case in CASES]


def test_expansion_is_cheap():
    start = time.process_time()
    for manifest in load_manifests("onnx"):
        for _ in expand(manifest):
            pass
    assert time.process_time() - start < 3


def test_every_type_of_an_entry_has_a_case():
    found = defaultdict(set)
    for case in CASES:
        found[case.operator, case.since_version].add(case.dtype)
    for manifest in load_manifests("onnx"):
        for item in manifest.items:
            parameter = item.dtype_parameter
            if parameter is None:
                continue
            allowed = item.signature.types[parameter]
            wanted = {name for name in item.entry.types.get(parameter, allowed) if name in allowed}
            missing = wanted - found[item.operator, item.since_version]
            # Text has no arithmetic: entries that exclude it say so in `where`.
            assert missing <= {"string", "bool", "complex64", "complex128", "float8e8m0"}, (item.operator, missing)


def test_cases_are_cells_of_the_denominator():
    cells = {(cell.operator, cell.since_version, cell.dtype) for cell in denominator().cells}
    reached = {(case.operator, case.since_version, name) for case in CASES for name in input_elements(case)}
    assert len(reached & cells) >= 0.98 * len(cells)


def test_nearly_every_attribute_is_set_by_a_case():
    attributes = {(one.operator, one.since_version, one.attribute) for one in denominator().attributes}
    reached = {(case.operator, case.since_version, name) for case in CASES for name in set_attributes(case)}
    assert len(reached & attributes) >= 0.95 * len(attributes)


def test_constraints_hold_of_every_case():
    from opsets.expressions import parse

    for case in CASES[::7]:
        item = find_item(case.framework, case.domain, case.operator, case.since_version)
        for text in item.entry.where:
            assert parse(text)(names_of(item, case)), (case.id, text)


def test_float_operators_meet_nan_and_infinity():
    meets = {case.operator for case in CASES if case.data_class == "special"}
    assert {"Add", "Relu", "Sigmoid", "MatMul", "ReduceSum", "AveragePool", "Softmax", "Concat", "Clip"} <= meets


def test_nan_and_infinity_meet_every_float_type_of_every_operator_version():
    floats = set(GROUPS["float"])
    reached = {
        (case.domain, case.operator, case.since_version, name) for case in CASES for name in special_elements(case)
    }
    for cell in denominator().cells:
        key = (cell.domain, cell.operator, cell.since_version, cell.dtype)
        if cell.dtype in floats and key not in reached:
            # A manifest that goes without says why.
            assert find_item("onnx", *key[:3]).entry.no_special, key


def test_every_type_meets_every_class_of_data_and_every_way_of_giving_inputs():
    for manifest in load_manifests("onnx"):
        for item in manifest.items:
            cases = list(expand(item))
            met = {(case.dtype, case.data_class) for case in cases} | {(case.dtype, case.input_mode) for case in cases}
            free = not item.entry.where and all(0 not in (case.shapes[0][1] or ()) for case in cases if case.shapes)
            if free and item.dtype_parameter in item.signature.types and not item.entry.types:
                for element in item.signature.types[item.dtype_parameter]:
                    wanted = {one for one in item.entry.data if applies(one, element)}
                    assert wanted <= {other for one, other in met if one == element}, (item.operator, element)


def test_shape_classes_are_all_met():
    assert {case.shape_class for case in CASES} == {"plain", "empty", "scalar", "broadcast"}


def test_zero_sized_inputs_have_a_class_of_their_own():
    for case in CASES:
        first = next((dims for _, dims in case.shapes if dims is not None), ())
        assert (case.data_class == "empty") == (0 in first)


def test_constraints_that_leave_nothing_are_refused(tmp_path):
    path = tmp_path / "none.yaml"
    path.write_text(
        "framework: onnx\nfamily: none\noperators:\n"
        "  Abs: {tolerance: exact, shapes: [[[2]]], where: ['rank(X) == 7']}\n"
    )
    with pytest.raises(ManifestError, match=r"none.yaml:4: Abs-1: found no case that meets 'where'"):
        list(expand(load_manifest(path)))
