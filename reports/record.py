"""The record of one case: what was tried, how far it came, what it cost. One JSON line a record.

Everything that a report shows is computed from records, so a record names its whole context: run, suite, versions,
backend and target. Fields are plain JSON; figures that are not finite are written as strings ("NaN", "Infinity").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

SCHEMA = 1
"""Version of the record's fields. Adding an optional field keeps it; changing the meaning of one raises it."""


class Outcome(StrEnum):
    """How a case ended. Only `passed` is green."""

    PASSED = "passed"
    QUALITY_WARNING = "quality_warning"
    WRONG_RESULT = "wrong_result"
    UNSUPPORTED = "unsupported"
    ERROR = "error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    ORACLE_DISAGREEMENT = "oracle_disagreement"
    UNVERIFIED = "unverified"
    NOT_RUN = "not_run"
    FOLDED = "folded"


class Stage(StrEnum):
    """The last stage that a case reached, in the order of the data."""

    GENERATE = "generate"
    IMPORT = "import"
    VERIFY = "verify"
    OPTIMIZE = "optimize"
    LOWER = "lower"
    SIMULATE = "simulate"
    COMPARE = "compare"


class Placement(StrEnum):
    """Where the compiled operators ran. Only `accelerator` counts as accelerated."""

    ACCELERATOR = "accelerator"
    HOST = "host"
    MIXED = "mixed"
    FOLDED = "folded"


OracleVerdict = Literal["agrees", "differs", "unavailable"]


def plain(value: object) -> JsonValue:
    """Return `value` as plain JSON data: arrays and tuples as lists, other objects by their text."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _non_finite(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="backslashreplace")
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str):
        return [plain(item) for item in value]
    return str(value)


def _non_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _one_line(text: object) -> object:
    return " ".join(text.split()) if isinstance(text, str) else text


_PlainMap = Annotated[dict[str, JsonValue], BeforeValidator(plain)]
_PlainList = Annotated[list[JsonValue], BeforeValidator(plain)]
_Line = Annotated[str, BeforeValidator(_one_line)]


class _Fields(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Errors(_Fields):
    """Distance of the worst output from the reference, in the output's own type (ulp) and in absolute terms.

    `bias` is the mean signed error in units of the tolerance class. A figure is None where it has no meaning.
    """

    max_ulp: float | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    bias: float | None = None


class HostOperator(_Fields):
    """An operator that was left to the host, why, and which node of the framework's model it came from."""

    operator: str
    reason: _Line
    location: str = ""


class Record(_Fields):
    """The outcome of one case. Bytes, cycles, picojoules and milliseconds; None where a stage was not reached.

    `utilization` is the busy share of each engine, 0 to 1. `reached` names the framework's own operators in the
    program, where the framework says more than the case's name does: ATen's overloads.
    """

    schema_version: int = Field(default=SCHEMA, alias="schema")
    run: str
    suite_hash: str
    versions: dict[str, str] = Field(default_factory=dict)
    backend: str
    target: str
    case_id: str
    framework: str
    suite: str
    domain: str = ""
    operator: str
    since_version: int = 0
    opset: int = 0
    dtype: str = ""
    attributes: _PlainMap = Field(default_factory=dict)
    shapes: _PlainList = Field(default_factory=list)
    reached: list[str] = Field(default_factory=list)
    data_class: str = ""
    input_mode: str = ""
    tolerance_class: str = ""
    stage: Stage
    outcome: Outcome
    placement: Placement | None = None
    diagnosis: str | None = None
    reason: _Line | None = None
    errors: Errors = Errors()
    oracles: dict[str, OracleVerdict] = Field(default_factory=dict)
    ruling: str | None = None
    cycles: int | None = None
    traffic_bytes: int | None = None
    compulsory_bytes: int | None = None
    energy_pj: float | None = None
    peak_sram_bytes: int | None = None
    operators_before: int | None = None
    operators_after: int | None = None
    utilization: dict[str, float] = Field(default_factory=dict)
    host_operators: list[HostOperator] = Field(default_factory=list)
    stage_ms: dict[str, float] = Field(default_factory=dict)
    cpu_ms: float = 0.0
    reproducer: str | None = None
    expected: str | None = None
    unexpected: bool = False

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    @model_validator(mode="after")
    def _known_schema(self) -> Record:
        if self.schema_version != SCHEMA:
            raise ValueError(f"schema {self.schema_version} of case {self.case_id!r}, this release reads {SCHEMA}")
        return self

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two records the same measurement: the case, the backend and the target."""
        return (self.case_id, self.backend, self.target)

    def to_line(self) -> str:
        """Return the record as one line of JSON, without the line feed."""
        return self.model_dump_json()
