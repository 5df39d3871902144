"""Commands on a file that torch wrote: eager torch is asked, and onnxruntime on the graph written back to ONNX."""

import json

import pytest

import opatlas

torch = pytest.importorskip("torch", reason="torch is an extra")


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x, y):
        return {"b": torch.nn.functional.gelu(self.linear(x)), "a": x + y}


@pytest.fixture
def program(tmp_path):
    torch.manual_seed(0)
    path = tmp_path / "block.pt2"
    torch.export.save(torch.export.export(Block(), (torch.zeros(2, 4), torch.zeros(2, 4))), path)
    return path


def run(capsys, *words):
    with pytest.raises(SystemExit) as found:
        opatlas.main([str(word) for word in words])
    return found.value.code or 0, capsys.readouterr()


def test_eager_torch_and_onnxruntime_are_both_asked(capsys, program):
    code, said = run(capsys, "check", program, "--json")
    data = json.loads(said.out)
    assert [(one["name"], one["agrees"]) for one in data["references"]] == [
        ("torch", True),
        ("onnxruntime on the exported graph", True),
    ]
    assert [row["type"] for row in data["outputs"]] == ["float32[2, 3]", "float32[2, 4]"]
    assert code == 0


def test_each_value_is_compared_and_each_rewrite_tried(capsys, program):
    assert run(capsys, "simulate", program, "--locate")[0] == 0
    assert run(capsys, "bisect", program)[0] == 0
