"""Finds targets: YAML files beside this module, YAML files by path, and plain systolic arrays by name."""

from __future__ import annotations

import math
import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml
from pydantic import ValidationError

from compiler.errors import InvalidTarget
from compiler.targets.schema import Target

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

DEFAULT_TARGET: Final = "reference-npu"
_SYSTOLIC: Final = re.compile(r"systolic-(\d+)x(\d+)-(os|ws|is)(?:-(\d+)of(\d+))?(-ideal)?")
_SYSTOLIC_BASE: Final = "systolic"


def target_names() -> tuple[str, ...]:
    """Names of the targets that come with the compiler, the default first; systolic ones as a pattern, last."""
    names = sorted(entry.name[:-5] for entry in resources.files(__package__).iterdir() if entry.name.endswith(".yaml"))
    names.remove(_SYSTOLIC_BASE)
    names.sort(key=lambda name: (name != DEFAULT_TARGET, name))
    return (*names, "systolic-RxC-os|ws|is[-NofM][-ideal]")


def load_target(name: str | Path | Target) -> Target:
    """The target of that name, or the one described in the YAML file at that path.

    ``systolic-RxC-os|ws|is`` names a plain array of any size on the memory of ``systolic.yaml``; with ``-NofM`` its
    weights are pruned to N of M, with ``-ideal`` that memory has infinite bandwidth and no latency.

    ``NAME@MODE`` is a target in one of its modes.
    Raises InvalidTarget in one line: key, found, expected.
    """
    if isinstance(name, Target):
        return name
    text, at, mode = str(name).partition("@")
    if at:
        return load_target(text).in_mode(mode)
    if text.endswith((".yaml", ".yml")) or "/" in text:
        return _load_file(Path(text))
    return _load_named(text)


@cache
def _load_named(name: str) -> Target:
    match = _SYSTOLIC.fullmatch(name)
    if match is not None:
        return _systolic(name, match)
    file = resources.files(__package__) / f"{name}.yaml"
    if name == _SYSTOLIC_BASE or not re.fullmatch(r"[\w.-]+", name) or not file.is_file():
        msg = f"target '{name}' is unknown; expected one of {', '.join(target_names())}, or the path of a YAML file"
        raise InvalidTarget(msg)
    return parse_target(file.read_text(encoding="utf-8"), name)


def _load_file(path: Path) -> Target:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"target file '{path}' cannot be read: {error}; expected a YAML file"
        raise InvalidTarget(msg) from error
    return parse_target(text, str(path))


def _systolic(name: str, match: re.Match[str]) -> Target:
    text = (resources.files(__package__) / f"{_SYSTOLIC_BASE}.yaml").read_text(encoding="utf-8")
    description = _mapping(text, name)
    description["name"] = name
    rows, columns, dataflow, kept, group, ideal = match.groups()
    description["matrix"] |= {"rows": int(rows), "columns": int(columns), "dataflow": dataflow}
    if kept:
        description["matrix"]["pruned"] = {"kept": int(kept), "group": int(group)}
    if ideal:
        description["dram"] |= {"bytes_per_cycle": math.inf, "latency_cycles": 0}
    return validate(description, name)


def parse_target(text: str, origin: str) -> Target:
    """The target that this YAML text describes; ``origin`` is named in refusals. Raises InvalidTarget."""
    return validate(_mapping(text, origin), origin)


class _KeyTwice(yaml.YAMLError):
    """A mapping with two entries of one key."""


class _Loader(yaml.SafeLoader):
    """YAML's plain types, and no key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for key, _ in node.value:
            if isinstance(key.value, str) and keys.count(key.value) > 1:
                msg = f"key '{key.value}' is given twice, again in line {key.start_mark.line + 1}"
                raise _KeyTwice(msg)
        return super().construct_mapping(node, deep)


def _mapping(text: str, origin: str) -> dict[str, Any]:
    try:
        description = yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except RecursionError as error:
        msg = f"target '{origin}' is nested more deeply than a target is"
        raise InvalidTarget(msg) from error
    except _KeyTwice as error:
        msg = f"target '{origin}': {error}"
        raise InvalidTarget(msg) from error
    except yaml.YAMLError as error:
        msg = f"target '{origin}' is no YAML: {' '.join(str(error).split())}"
        raise InvalidTarget(msg) from error
    if not isinstance(description, dict):
        msg = f"target '{origin}' is {type(description).__name__}; expected a mapping of keys to values"
        raise InvalidTarget(msg)
    return description


def validate(description: dict[str, Any], origin: str) -> Target:
    """The target of a description as plain data; ``origin`` is named in refusals. Raises InvalidTarget."""
    try:
        return Target.model_validate(description)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        msg = f"target '{origin}': {_problem(problems[0])}{more}"
        raise InvalidTarget(msg) from error


def _problem(error: ErrorDetails) -> str:
    key = ".".join(str(part) for part in error["loc"])
    kind, found = error["type"], error["input"]
    if kind == "extra_forbidden":
        return f"key '{key}' is unknown"
    if kind == "missing":
        return f"key '{key}' is missing"
    said = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if isinstance(found, (dict, Target)) or not key:
        return f"{key}: {said}" if key else said
    return f"key '{key}' is {found!r}; {said if said.startswith('expected') else f'expected {said}'}"
