"""A suite and a backend that crash, hang, eat memory and lie on request: what the suite's own tests run.

`pytest conformance/ --suite conformance.misbehaving --backend conformance.misbehaving`
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
from onnx import ModelProto, TensorProto, helper

from conformance.case import CaseInfo, LoadedCase
from conformance.comparison import Output

DATA = np.array([-1.5, 0.0, 2.5, 3.0], np.float32)


class Suite:
    """One Abs model a kind of misbehaviour; the graph's name tells the backend what to do."""

    name: ClassVar[str] = "conformance.misbehaving"
    time_limit: ClassVar[float] = 30.0

    def prepare(self, say: Callable[[str], None]) -> None:
        del say

    def cases(self) -> Iterator[CaseInfo]:
        for kind in BEHAVIOURS:
            yield CaseInfo(id=f"misbehaving-{kind}", suite=self.name, operator="Abs", opset=13, dtype="float32")

    def load(self, info: CaseInfo) -> LoadedCase:
        self._generate(info)
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]
        name = info.id.removeprefix("misbehaving-")
        graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], name, values[:1], values[1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        return LoadedCase(model, [DATA], "exact")

    def reproducer(self, info: CaseInfo) -> str | None:
        self._generate(info)
        return f"# {info.id}\n"

    @staticmethod
    def _generate(info: CaseInfo) -> None:
        if info.id == "misbehaving-template":
            raise LookupError("no such name in the template")


class Refused(NotImplementedError):
    """What this backend raises for what it does not do."""


def _right(inputs: Sequence[Output]) -> Sequence[Output]:
    return [np.abs(np.asarray(inputs[0]))]


def _wrong(inputs: Sequence[Output]) -> Sequence[Output]:
    return [np.asarray(inputs[0])]


def _drop(inputs: Sequence[Output]) -> Sequence[Output]:
    del inputs
    return []


def _segfault(inputs: Sequence[Output]) -> Sequence[Output]:
    ctypes.string_at(0)
    return _right(inputs)


def _exit(inputs: Sequence[Output]) -> Sequence[Output]:
    del inputs
    os._exit(3)


def _hang(inputs: Sequence[Output]) -> Sequence[Output]:
    time.sleep(1000)
    return _right(inputs)


def _eat_memory(inputs: Sequence[Output]) -> Sequence[Output]:
    eaten = np.ones((1 << 40,), np.uint8)
    return [*_right(inputs), eaten]


def _raise(inputs: Sequence[Output]) -> Sequence[Output]:
    raise ZeroDivisionError(f"of {len(inputs)} inputs\nand a second line")


def _refuse(inputs: Sequence[Output]) -> Sequence[Output]:
    raise Refused(f"no kernel for {len(inputs)} inputs")


def _slow(inputs: Sequence[Output]) -> Sequence[Output]:
    time.sleep(1.0)
    return _right(inputs)


BEHAVIOURS: Mapping[str, Callable[[Sequence[Output]], Sequence[Output]]] = {
    "right": _right,
    "wrong": _wrong,
    "dropped-output": _drop,
    "segfault": _segfault,
    "exit": _exit,
    "template": _right,
    "hang": _hang,
    "memory": _eat_memory,
    "exception": _raise,
    "refusal": _refuse,
    **{f"slow-{index}": _slow for index in range(6)},
    "right-after-all": _right,
}


class _Program:
    def __init__(self, behaviour: Callable[[Sequence[Output]], Sequence[Output]]) -> None:
        self.run = behaviour


def compile(model: ModelProto) -> _Program:
    """Return the program that the graph's name asks for."""
    return _Program(BEHAVIOURS[model.graph.name])


def create() -> Suite:
    """Return the suite."""
    return Suite()
