import subprocess
import sys

import numpy as np
import pytest

from generators.torch_cases import build_torch, expand_torch, render_torch


def test_listing_cases_imports_no_torch():
    code = (
        "import sys; from generators.torch_cases import expand_torch; cases = list(expand_torch());"
        "assert len(cases) > 4000, len(cases); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ids_are_unique_and_hold_no_index_of_order():
    ids = [case.id for case in expand_torch()]
    assert len(set(ids)) == len(ids)
    assert ids == [case.id for case in expand_torch()]
    assert max(map(len, ids)) <= 190


def test_every_case_renders_to_source_that_compiles():
    for case in list(expand_torch())[::40]:
        compile(render_torch(case), case.id, "exec")


def test_a_built_case_runs_in_eager_torch_and_is_drawn_by_its_id():
    torch = pytest.importorskip("torch")
    case = next(case for case in expand_torch() if case.operator == "mm" and case.dtype == "float32")
    module, inputs = build_torch(case)
    again = build_torch(case)[1]
    assert all(np.array_equal(a, b) for a, b in zip(inputs, again, strict=True))
    result = module(*[torch.from_numpy(value) for value in inputs])
    assert np.allclose(result.numpy(), inputs[0] @ inputs[1], rtol=1e-4, atol=1e-4)


def test_weights_are_the_same_each_time_and_of_the_cases_type():
    torch = pytest.importorskip("torch")
    case = next(case for case in expand_torch() if case.operator == "lstm" and case.dtype == "float64")
    one, two = (build_torch(case)[0].state_dict() for _ in range(2))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert {value.dtype for value in one.values()} == {torch.float64}


def test_a_reproducer_runs_on_its_own():
    pytest.importorskip("torch")
    case = next(case for case in expand_torch() if case.operator == "softmax")
    ran = subprocess.run([sys.executable, "-"], input=render_torch(case), text=True, capture_output=True, check=True)
    assert "->" in ran.stdout
