"""Cases of PyTorch's manifests: their ids, and the source of the module and the inputs that each one is."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from generators.drawing import draw_code
from generators.expand import applies
from generators.pairwise import Axis, select
from generators.render import draws_source, python_source
from opsets.manifest import Draw
from opsets.torch_manifest import TYPES, TorchItem, load_torch_manifests, torch_item

_UNSAFE = re.compile(r"[^\w.,=+~-]")
_LONGEST = 180


@dataclass(frozen=True, slots=True)
class TorchCase:
    """Operator x form of the expression x element type x parameters x shapes x data class."""

    operator: str
    form: int
    dtype: str
    parameters: tuple[tuple[str, Any], ...]
    shapes: tuple[tuple[int, ...] | None, ...]
    data_class: str
    mode: str
    id: str

    @property
    def seed(self) -> int:
        """Seed of the draws: 64 bits of a hash of the id."""
        return int.from_bytes(hashlib.blake2b(self.id.encode(), digest_size=8).digest(), "big")


def expand_torch() -> Iterator[TorchCase]:
    """Every case of every manifest, in order; nothing is rendered and torch is not imported."""
    for item in load_torch_manifests():
        yield from _expanded(item)


def _expanded(item: TorchItem) -> Iterator[TorchCase]:
    entry = item.entry
    forms = (entry.forward,) if isinstance(entry.forward, str) else tuple(entry.forward)
    axes = [
        Axis("dtype", TYPES[entry.types]),
        Axis("data", tuple(entry.data)),
        Axis("form", tuple(range(len(forms)))),
        Axis("shapes", tuple(_frozen(row) for row in entry.shapes)),
        *(Axis(name, tuple(_frozen(value) for value in values)) for name, values in entry.grid.items()),
        *([Axis("set", tuple(range(len(entry.sets))))] if entry.sets else []),
    ]
    seen: set[str] = set()
    for row in select(axes, [], entry.cap, [("dtype", "data")]):
        chosen = {axis.name: value for axis, value in zip(axes, row, strict=True)}
        dtype, data = str(chosen["dtype"]), str(chosen["data"])
        if not applies(data, dtype):
            data = "random"
        parameters = {name: chosen[name] for name in entry.grid}
        if entry.sets:
            parameters |= {name: _frozen(value) for name, value in entry.sets[chosen["set"]].items()}  # type: ignore[call-overload] # an index
        case = _case(item, chosen, dtype, data, parameters)
        if case.id not in seen:
            seen.add(case.id)
            yield case


def _case(item: TorchItem, chosen: dict[str, Any], dtype: str, data: str, parameters: dict[str, Any]) -> TorchCase:
    shapes = chosen["shapes"]
    pieces = [f"torch-{item.operator}-{dtype}", *(f"{name}={_text(value)}" for name, value in parameters.items())]
    if not isinstance(item.entry.forward, str):
        pieces.append(f"form={chosen['form']}")
    pieces.append("_".join("none" if dims is None else "x".join(map(str, dims)) or "scalar" for dims in shapes))
    pieces += [data, item.entry.mode]
    text = _UNSAFE.sub(lambda found: f"~{ord(found[0]):02x}", "-".join(pieces))
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 12]}~{hashlib.blake2b(text.encode(), digest_size=5).hexdigest()}"
    return TorchCase(
        item.operator, chosen["form"], dtype, tuple(parameters.items()), shapes, data, item.entry.mode, text
    )


def _frozen(value: Any) -> Any:  # noqa: ANN401 - a value of YAML
    return tuple(_frozen(part) for part in value) if isinstance(value, list) else value


def _text(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, tuple):
        return ",".join(map(_text, value)) or "empty"
    return f"{value:g}" if isinstance(value, float) else str(value).removeprefix("torch.")


def _code_of(value: Any) -> str:  # noqa: ANN401
    """A parameter as Python source; names of torch stay as they are."""
    return value if isinstance(value, str) and value.startswith("torch.") else python_source(value)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates" / "torch"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Python source, not HTML
    )


def torch_source(case: TorchCase) -> str:
    """Source of the case's own part: the module's class and a function that draws its inputs."""
    item = torch_item(case.operator)
    entry = item.entry
    forms = [entry.forward] if isinstance(entry.forward, str) else entry.forward
    names = [name for name, dims in zip(entry.inputs, case.shapes, strict=True) if dims is not None]
    values = {name: _code_of(value) for name, value in case.parameters}
    values |= {"dtype": f"torch.{case.dtype}"}
    values |= {name: "None" for name, dims in zip(entry.inputs, case.shapes, strict=True) if dims is None}
    environment = _environment()
    inputs = [
        (name, _draw(entry.inputs[name], case, dims or ()))
        for name, dims in zip(entry.inputs, case.shapes, strict=True)
        if dims is not None
    ]
    return environment.get_template("module.jinja").render(
        names=names,
        absent=[name for name in entry.inputs if name not in names],
        inputs=inputs,
        init=environment.from_string(entry.init).render(values).strip().splitlines(),
        forward=environment.from_string(forms[case.form]).render(values).strip().splitlines(),
        dtype=case.dtype,
        is_float="float" in case.dtype,
        seed=f"0x{case.seed:016x}",
    )


def _draw(draw: Draw, case: TorchCase, shape: tuple[int, ...]) -> str:
    return draw_code(draw, case.data_class, _element(draw, case), shape, {})


def _element(draw: Draw, case: TorchCase) -> str:
    """The element type of an input: its own, that of a parameter in double braces, or the case's."""
    if draw.type is None:
        return case.dtype
    parameter = draw.type.strip("{} ")
    return str(dict(case.parameters).get(parameter, draw.type))


def render_torch(case: TorchCase) -> str:
    """Source that anyone can run with numpy, ml_dtypes and torch: it prints the inputs and what eager torch gives."""
    code = torch_source(case)
    return _environment().get_template("reproducer.jinja").render(case=case, code=code, draws=draws_source(code))


def build_torch(case: TorchCase) -> tuple[Any, list[Any]]:
    """The module, in evaluation mode, and its inputs as numpy arrays, by executing the case's source."""
    import inspect

    import ml_dtypes
    import numpy as np
    import torch

    from generators import draws

    scope: dict[str, Any] = {name: value for name, value in vars(draws).items() if inspect.isfunction(value)}
    scope |= {"np": np, "ml_dtypes": ml_dtypes, "torch": torch}
    exec(compile(torch_source(case), f"<{case.id}>", "exec", dont_inherit=True), scope)  # noqa: S102 - our own templates
    return scope["make_module"](), scope["make_inputs"]()
