from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from reports.execution import bytes_text, check_text, located_text, simulation_json, simulation_text, with_prefix

RESULT = SimpleNamespace(
    outputs=[np.zeros((2, 3), np.float16), [np.zeros(1)], None],
    placement="mixed",
    host_operators=[SimpleNamespace(operator="sort", reason="no instruction [for it]", location="m.onnx: n0 (Sort)")],
    cycles=1234,
    seconds=1.234e-6,
    traffic_bytes=3000,
    compulsory_bytes=1500,
    peak_sram_bytes=2048,
    energy_pj=1e6,
    energy_by_component={"sram": 2.5e5, "dram": 7.5e5},
    utilization={"matrix": 0.5},
    operators_before=3,
    operators_after=7,
    stage_ms={"import": 1.23456},
)


def text(renderable):
    stream = StringIO()
    Console(file=stream, width=120, color_system=None).print(renderable)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0 s"),
        (1.5, "1.5 s"),
        (36.45e-6, "36.45 us"),
        (2.5e-13, "2.5e-13 s"),
        (12345.0, "12.35 ks"),
        (1e-9, "1 ns"),
    ],
)
def test_figures_have_a_prefix_and_four_digits(value, shown):
    assert with_prefix(value, "s") == shown


def test_bytes_have_their_binary_prefix_beside_them():
    assert bytes_text(1023) == "1,023"
    assert bytes_text(3 * 1024**2) == "3,145,728 (3.00 MiB)"


def test_a_result_as_plain_data_describes_outputs_of_every_kind():
    data = simulation_json("m.onnx", "npu", ["a", "b", "c"], RESULT)
    assert data["outputs"] == [
        {"name": "a", "type": "float16", "shape": [2, 3]},
        {"name": "b", "type": "list", "shape": None},
        {"name": "c", "type": "NoneType", "shape": None},
    ]
    assert data["stage_ms"] == {"import": 1.235}
    assert data["host_operators"][0]["operator"] == "sort"


def test_the_text_of_a_result_has_ratio_shares_and_reasons():
    shown = text(simulation_text(simulation_json("m.onnx", "npu", ["a", "b", "c"], RESULT)))
    for part in ("2.00 of compulsory", "75.0 %", "1 uJ", "no instruction [for it]", "m.onnx: n0 (Sort)", "50.0 %"):
        assert part in shown
    assert shown.index("dram") < shown.index("sram")


def test_a_check_shows_what_differs_and_by_how_much():
    output = {
        "name": "y",
        "type": "float32[2]",
        "agrees": False,
        "max_abs": 0.5,
        "max_abs_allowed": 1e-6,
        "rms": 0.5,
        "rms_allowed": 1e-6,
        "note": "",
    }
    shown = text(
        check_text({"model": "m", "target": "npu", "placement": "host", "outputs": [output], "host_operators": []})
    )
    assert "differs" in shown
    assert "1e-06" in shown


@pytest.mark.parametrize("node", ["n7", ""])
def test_the_first_value_that_differs_is_named_with_its_node(node):
    first = {"name": "h", "node": node, "operator": "Relu", "max_abs": None, "max_abs_allowed": None, "note": "no [x]"}
    shown = text(located_text({"model": "m", "target": "npu", "compared": 3, "first": first}))
    assert "'h'" in shown
    assert "Relu" in shown
    assert "no [x]" in shown
