"""An operator of another package: its domain is known, it runs on the accelerator, and a broken package is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

EXTENSION = '''
from typing import ClassVar

import onnx
from onnx.defs import OpSchema

from compiler.frontends.onnx import converts
from compiler.ops.elementwise import Elementwise, unary
from compiler.ops.registry import FLOAT, register
from compiler.ops.scalars import apply_scalar
from compiler.ops.work import Apply


@register
class Twice(Elementwise):
    """x + x."""

    name: ClassVar[str] = "acme.twice"
    operands = unary(FLOAT)

    def evaluate(self, call, operands, run_region):
        return (apply_scalar("add", operands[0], operands[0]),)

    def scalar(self, call, operands):
        return Apply("add", (operands[0], operands[0]), operands[0].element)


@converts("Twice", domain="acme")
def twice(site):
    return site.b(Twice, site.input(0))


formal = [OpSchema.FormalParameter(name, "T") for name in "xy"]
onnx.defs.register_schema(
    OpSchema("Twice", "acme", 1, inputs=formal[:1], outputs=formal[1:], type_constraints=[("T", ["tensor(float)"], "")])
)
'''

PROGRAM = """
import numpy as np
from onnx import parser
from compiler import api
from compiler.errors import OpatlasError

model = parser.parse_model('<ir_version: 10, opset_import: ["acme": 1]> g (float[3] x) => (float[3] y) { y = acme.Twice (x) }')
try:
    result = api.compile(model).simulate([np.array([1, 2, 3], np.float32)])
    print(result.outputs[0].tolist(), result.placement)
except OpatlasError as error:
    print(error.diagnosis, error)
"""  # noqa: E501 - one line of a model


@pytest.fixture
def run(tmp_path):
    def ran(source):
        (tmp_path / "acme_operators.py").write_text(source)
        folder = tmp_path / "acme-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text("[opatlas.operators]\nacme = acme_operators\n")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return ran


def test_an_operator_of_another_package_runs_on_the_accelerator(run):
    assert run(EXTENSION) == "[2.0, 4.0, 6.0] accelerator"


def test_an_extension_that_cannot_be_imported_is_named(run):
    assert run("raise KeyError('x')") == (
        "BrokenExtension extension 'acme' (acme_operators) cannot be imported: KeyError: 'x'"
    )
