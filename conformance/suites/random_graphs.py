"""Random graphs: some dozens of operators joined at random over small integers, so that every result is exact.

What single operators never meet: values used twice, outputs that are intermediates or inputs or the same value twice,
views of views, empty values, branches and loops that read from outside. The seed is the case. The environment variable
`OPATLAS_RANDOM_GRAPHS` sets how many there are of each type (30); those with a seed that 3 divides also have functions
that round, such as tanh.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output
from conformance.suites.random_drawing import Drawing, Made
from conformance.suites.random_steps import ALL_STEPS, grow

OPSET = 21
_ELEMENTS: Mapping[str, int] = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "int8": TensorProto.INT8,
}


class RandomGraphs:
    """Graphs by type and seed, held to the bit, or within a few units of the last place where a function rounds."""

    name: ClassVar[str] = "random"
    time_limit: ClassVar[float] = 60.0

    def prepare(self, say: Callable[[str], None]) -> None:
        del say

    def cases(self) -> Iterator[CaseInfo]:
        for dtype in _ELEMENTS:
            for seed in range(int(os.environ.get("OPATLAS_RANDOM_GRAPHS", "30"))):
                yield CaseInfo(
                    id=f"{self.name}/{dtype}/{seed}",
                    suite=self.name,
                    operator="random graph",
                    domain="graphs",
                    opset=OPSET,
                    dtype=dtype,
                    data_class="small integers",
                    input_mode="static",
                    source=seed,
                )

    def load(self, info: CaseInfo) -> LoadedCase:
        seed = info.source
        if not isinstance(seed, int):
            raise TypeError(f"{info.id}: found a source of {type(seed).__name__}, expected a seed")
        rounds = not seed % 3
        model, inputs = random_model(seed, info.dtype, rounds=rounds)
        tolerance = "max_relative(4)" if rounds else "exact"
        rule = "onnxruntime: the reference follows Python where a slice starts before the first element"
        return LoadedCase(model, inputs, tolerance, ruling="onnxruntime", rule=rule)

    def reproducer(self, info: CaseInfo) -> str | None:
        loaded = self.load(info)
        assert loaded.model is not None
        return _REPRODUCER.format(
            text=onnx.printer.to_text(loaded.model),
            model=loaded.model.SerializeToString(),
            inputs=[np.asarray(value).tolist() for value in loaded.inputs],
            shapes=[np.asarray(value).shape for value in loaded.inputs],
            dtype=info.dtype,
        )


_REPRODUCER = '''"""A random graph. As text:

{text}
"""

import numpy as np
import onnx
import onnxruntime

model = onnx.load_from_string({model!r})
inputs = [np.array(value, "{dtype}").reshape(shape) for value, shape in zip({inputs}, {shapes}, strict=True)]
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
for name, value in zip(
    [output.name for output in model.graph.output],
    session.run(None, dict(zip([value.name for value in model.graph.input], inputs, strict=True))),
    strict=True,
):
    print(name, value.dtype, value.shape, value, sep="\\n")
'''


def create() -> RandomGraphs:
    """Return the suite."""
    return RandomGraphs()


def random_model(seed: int, dtype: str, *, rounds: bool = False) -> tuple[ModelProto, list[Output]]:
    """Return a model and its inputs. With `rounds` some outputs are of functions that round, such as tanh."""
    chance = random.Random(f"{seed}/{dtype}/{rounds}")
    d = Drawing(chance, _ELEMENTS[dtype], rounds)
    generator = np.random.default_rng(chance.getrandbits(32))
    feeds: list[Output] = []
    for index in range(chance.randint(1, 3)):
        shape = tuple(chance.choice([0, 1, 1, 2, 3, 5, 8, 17]) for _ in range(chance.choice([0, 1, 2, 2, 3, 3, 4])))
        d.values.append(Made(f"x{index}", d.element, shape, 4))
        feeds.append(generator.integers(-4, 5, shape).astype(np.dtype(dtype)))
    given = list(d.values)
    grow(d, chance.randint(2, 14), ALL_STEPS)
    outputs = chance.choices(d.values, k=chance.randint(0, 3)) + d.values[-1:]
    infos: list[ValueInfoProto] = []
    for index, value in enumerate(outputs):
        name = value.name
        if value in given or any(name == known.name for known in infos):
            name = f"y{index}"
            d.nodes.append(helper.make_node("Identity", [value.name], [name]))
        infos.append(helper.make_tensor_value_info(name, value.element, value.shape))
    inputs = [helper.make_tensor_value_info(value.name, value.element, value.shape) for value in given]
    graph = helper.make_graph(d.nodes, "random", inputs, infos, d.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10), feeds
