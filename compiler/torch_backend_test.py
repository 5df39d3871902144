import importlib
import tomllib
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402, N812

from compiler import torch_backend  # noqa: E402
from compiler.torch_backend import opatlas, report, reset  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    reset()
    yield
    torch._dynamo.reset()


def agrees(function, *inputs, tolerance=1e-5, **options):
    compiled = torch.compile(function, backend=opatlas, **options)
    with torch.no_grad():
        found, expected = compiled(*inputs), function(*inputs)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    return compiled


X = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))


def test_torch_finds_the_backend_by_its_entry_point():
    text = (Path(torch_backend.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    entry = tomllib.loads(text)["project"]["entry-points"]["torch_dynamo_backends"]["opatlas"]
    module, _, name = entry.partition(":")
    assert getattr(importlib.import_module(module), name) is opatlas


def test_a_module_agrees_with_eager_and_is_reported():
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)
    )
    compiled = agrees(module, X)
    with torch.no_grad():
        compiled(X.clone())
    (graph,) = report().graphs
    assert graph.placement == "accelerator"
    assert graph.runs == 2
    assert report().cycles > 0
    assert graph.last.energy_pj > 0
    assert "accelerator" in str(report())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.bool])
def test_element_types_come_back_as_they_were(dtype):
    agrees(lambda x: (x & x if dtype is torch.bool else x * x, x.t().contiguous()), (X * 4).to(dtype), tolerance=0)


def test_several_results_views_and_writes():
    def forward(x):
        y = x.clone()
        y[:, 1:3] = 0
        y.mul_(2)
        return y, x.split(4, 1), {"sum": x.sum()}, x.shape[0]

    agrees(forward, X)


def test_an_input_that_is_written_to_has_the_new_value():
    first, second = X.clone(), X.clone()
    torch.compile(lambda x: x.add_(1), backend=opatlas)(first)
    assert torch.equal(first, second.add_(1))


def test_sizes_may_change_without_a_new_graph():
    compiled = agrees(lambda x: F.softmax(x, 1) * x.shape[0] + x.reshape(-1).sum(), X, dynamic=True)
    for rows in (5, 7):
        x = torch.randn(rows, 8)
        with torch.no_grad():
            found = compiled(x)
        torch.testing.assert_close(found, F.softmax(x, 1) * rows + x.sum(), rtol=1e-4, atol=1e-4)
    assert len(report().graphs) == 1


def test_gradients_run_on_it_too():
    x = X.clone().requires_grad_()
    y = X.clone().requires_grad_()
    torch.compile(lambda x: (x.sin() * x).sum(), backend=opatlas)(x).backward()
    (y.sin() * y).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    assert len(report().graphs) == 2


def test_a_graph_break_is_named_with_its_line():
    def forward(x):
        y = x * 2
        torch._dynamo.graph_break()
        return y + 1

    agrees(forward, X)
    (found,) = report().breaks
    assert found.location.endswith("in forward")
    line = forward.__code__.co_firstlineno + 2
    assert f"{Path(__file__).name}:{line}" in found.location
    assert len(report().graphs) == 2


def test_options_choose_the_target():
    agrees(lambda x: x + 1, X, options={"target": "edge-npu", "precision": "float16"}, tolerance=1e-2)
    assert report().graphs[0].target == "edge-npu"


def test_what_is_wrong_is_said_in_one_line():
    with pytest.raises(
        Exception, match="option 'fast' of backend opatlas is unknown; expected one of target, precision"
    ):
        torch.compile(lambda x: x + 1, backend=opatlas, options={"fast": True})(X)
    with pytest.raises(Exception, match=r"linalg_ldl_factor_ex.*has no conversion"):
        torch.compile(lambda x: torch.linalg.ldl_factor_ex(x @ x.T)[0], backend=opatlas)(X)


def test_what_ran_on_the_host_is_said():
    agrees(torch.special.i0, X)
    assert any("host" in line for line in str(report()).splitlines())
