"""The figures of a run in one object: what passed, where the rest breaks, why, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from reports.matrix import Cell, CellKey, State, build_matrix, unknown_release, worst
from reports.query import Database
from reports.record import Outcome, Placement, Record, Stage
from reports.store import BadLine

SCHEMA = 1
"""Version of `coverage.json`. Adding a field keeps it; changing the meaning of one raises it."""

TOP = 20
"""Length of the lists of reasons; the records have the rest."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Reach(_Model):
    """How far a run got on one axis: `total` defined, `tried` by at least one case that ran, `passed` in every case."""

    passed: int
    tried: int
    total: int


class Reason(_Model):
    """Cases that broke for one reason, numbers and quoted names set aside: its text, how many, and one of them."""

    outcome: str
    stage: str
    diagnosis: str
    reason: str
    cases: int
    example: str


class HostReason(_Model):
    """An operator that went to the host, and in how many cases."""

    operator: str
    reason: str
    cases: int


class Disagreement(_Model):
    """A case whose independent references differ, their verdicts, and the ruling if the manifest has one."""

    case_id: str
    outcome: str
    oracles: dict[str, str]
    ruling: str | None


class Ruled(_Model):
    """Cases of one operator whose references differ in one way: which of them follows the specification, by which rule.

    `follows` and `rule` are empty where the manifest rules on nothing; such cases stay disagreements.
    """

    operator: str
    follows: str
    rule: str
    cases: int
    example: str


class Surprise(_Model):
    """A case that ended otherwise than its expectations file says."""

    case_id: str
    expected: str
    found: str
    stage: str


class Cost(_Model):
    """Milliseconds of the run: CPU over all cases, per case, and wall time by stage."""

    cpu_ms: float
    cpu_ms_per_case: float
    stage_ms: dict[str, float]


class Summary(_Model):
    """The figures of a run. `placements` counts passed cases only: an operator that fails is accelerated nowhere."""

    schema_version: int = Field(default=SCHEMA, serialization_alias="schema", validation_alias="schema")
    runs: list[str]
    suite_hashes: list[str]
    versions: dict[str, str]
    configurations: list[str]
    cases: int
    outcomes: dict[str, int]
    placements: dict[str, int]
    broken_at: dict[str, int]
    operators: Reach
    pairs: Reach
    cells: Reach
    reasons: list[Reason]
    host_reasons: list[HostReason]
    disagreements: list[Disagreement]
    rulings: list[Ruled] = Field(default_factory=list)
    unexpected: list[Surprise]
    cost: Cost
    duplicates: int = 0
    unreadable: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    """What a reader of the figures must know, such as a denominator of another release."""

    model_config = ConfigDict(populate_by_name=True)

    @property
    def passed(self) -> int:
        """Number of cases that passed."""
        return self.outcomes.get(Outcome.PASSED, 0)

    def share(self, number: int) -> float:
        """Return `number` as a share of all cases, between 0 and 1."""
        return number / self.cases if self.cases else 0.0


_REASONS = f"""
    SELECT outcome, stage, coalesce(diagnosis, ''), coalesce(min(reason), ''), count(*) AS cases, min(case_id)
    FROM broken GROUP BY outcome, stage, diagnosis, regexp_replace(reason, '''[^'']*''|[0-9]+', '#', 'g')
    ORDER BY cases DESC, 1, 2, 3, 4, 6 LIMIT {TOP}
"""  # noqa: S608 - TOP is a constant of this module
_HOST_REASONS = f"""
    SELECT host.operator, host.reason, count(DISTINCT case_id || backend || target) AS cases
    FROM (SELECT case_id, backend, target, unnest(host_operators) AS host FROM records)
    GROUP BY 1, 2 ORDER BY cases DESC, 1, 2 LIMIT {TOP}
"""  # noqa: S608 - TOP is a constant of this module
NO_VOTE = "own-evaluate"
"""The compiler's own evaluation is recorded beside the references, but it is not one of them."""

_DISAGREEING = f"""
    FROM (SELECT *, [entry.value FOR entry IN map_entries(oracles) IF entry.key <> '{NO_VOTE}'] AS votes FROM records)
    WHERE outcome = 'oracle_disagreement' OR (list_contains(votes, 'agrees') AND list_contains(votes, 'differs'))
"""  # noqa: S608 - the name is a constant of this module
_DISAGREEMENTS = f"SELECT case_id, outcome, oracles, ruling {_DISAGREEING} ORDER BY case_id, backend, target"
_RULINGS = f"""
    SELECT operator, coalesce(ruling, ''), count(*) AS cases, min(case_id) {_DISAGREEING}
    GROUP BY operator, ruling ORDER BY ruling IS NULL DESC, cases DESC, 1, 2
"""
_SURPRISES = """
    SELECT case_id, coalesce(expected, 'no entry'), outcome, stage FROM records WHERE unexpected
    ORDER BY case_id, backend, target
"""
_PLACEMENTS = """
    SELECT placement, count(*) FROM records WHERE outcome = 'passed' AND placement IS NOT NULL GROUP BY 1
"""
_STAGE_MS = """
    SELECT entry.key, sum(entry.value) FROM (SELECT unnest(map_entries(stage_ms)) AS entry FROM records)
    GROUP BY 1 ORDER BY 1
"""


_MS_NAMES = ("generate", "compile", "import", "verify", "optimize", "lower", "run", "simulate", "oracles", "compare")
_MS_ORDER = {name: index for index, name in enumerate(_MS_NAMES)}
"""`compile` holds import to lower, `run` holds simulate; the others stand beside these two."""


def summarize(
    records: Iterable[Record],
    denominator: Iterable[CellKey] = (),
    *,
    bad_lines: Iterable[BadLine] = (),
    duplicates: int = 0,
) -> Summary:
    """Return the figures of `records`, measured against `denominator`: all cells that a framework defines.

    Cases outside it (whole models, operators of one's own) count as cases, but not in what was reached of it.
    """
    found = tuple(records)
    everything = frozenset(denominator)
    cells = [cell for key, cell in build_matrix(found, everything).items() if key in everything or not everything]
    with Database(found) as database:
        return Summary(
            runs=_names(database, "run"),
            suite_hashes=_names(database, "suite_hash"),
            versions=_versions(found),
            configurations=_names(database, "backend || CASE WHEN target = '' THEN '' ELSE ' on ' || target END"),
            cases=len(found),
            outcomes=_in_order(Outcome, database.counts("SELECT outcome, count(*) FROM records GROUP BY 1")),
            placements=_in_order(Placement, database.counts(_PLACEMENTS)),
            broken_at=_in_order(Stage, database.counts("SELECT stage, count(*) FROM broken GROUP BY 1")),
            operators=_reach(cells, 3),
            pairs=_reach(cells, 4),
            cells=_reach(cells, 5),
            reasons=[Reason(**_named(Reason, row)) for row in database.rows(_REASONS)],
            host_reasons=[HostReason(**_named(HostReason, row)) for row in database.rows(_HOST_REASONS)],
            disagreements=[Disagreement(**_named(Disagreement, row)) for row in database.rows(_DISAGREEMENTS)],
            rulings=[_ruled(*row) for row in database.rows(_RULINGS)],
            unexpected=[Surprise(**_named(Surprise, row)) for row in database.rows(_SURPRISES)],
            cost=_cost(found, database),
            duplicates=duplicates,
            unreadable=[str(line) for line in bad_lines],
            notes=_notes(found),
        )


def _notes(records: tuple[Record, ...]) -> list[str]:
    release = unknown_release(records)
    if release is None:
        return []
    import onnx

    return [f"what exists is counted by the installed onnx {onnx.__version__}; records are of the newer {release}"]


def _ruled(operator: str, ruling: str, cases: int, example: str) -> Ruled:
    """The ruling of a record is `oracle: rule`."""
    follows, _, rule = ruling.partition(": ")
    return Ruled(operator=operator, follows=follows, rule=rule, cases=cases, example=example)


def _named(model: type[BaseModel], row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(model.model_fields, row, strict=True))


def _names(database: Database, expression: str) -> list[str]:
    return [str(row[0]) for row in database.rows(f"SELECT DISTINCT {expression} FROM records ORDER BY 1")]  # noqa: S608 - our own expressions


def _versions(records: tuple[Record, ...]) -> dict[str, str]:
    """Return each package's version; several, where machines of one run differ, with commas between."""
    versions: dict[str, set[str]] = {}
    for record in records:
        for package, version in record.versions.items():
            versions.setdefault(package, set()).add(version)
    return {package: ", ".join(sorted(found)) for package, found in sorted(versions.items())}


def _in_order(names: type[Outcome | Placement | Stage], counts: dict[str, int]) -> dict[str, int]:
    return {name.value: counts[name.value] for name in names if name.value in counts}


def _reach(cells: Iterable[Cell], parts: int) -> Reach:
    """Group cells by the first `parts` fields of their key, and count groups that pass, were tried, and exist."""
    groups: dict[tuple[object, ...], set[State]] = {}
    for cell in cells:
        groups.setdefault(cell.key[:parts], set()).update(State(outcome) for outcome in cell.outcomes)
    untried = {State.NOT_RUN}
    tried = [states for states in groups.values() if states - untried]
    return Reach(
        passed=sum(worst(states) is State.PASSED for states in tried),
        tried=len(tried),
        total=len(groups),
    )


def _cost(records: tuple[Record, ...], database: Database) -> Cost:
    total = sum(record.cpu_ms for record in records)
    ran = sum(record.outcome is not Outcome.NOT_RUN for record in records)
    stages: Counter[str] = Counter({str(name): float(value) for name, value in database.rows(_STAGE_MS)})
    names = sorted(stages, key=lambda name: (_MS_ORDER.get(name, len(_MS_ORDER)), name))
    return Cost(
        cpu_ms=round(total, 3),
        cpu_ms_per_case=round(total / ran, 3) if ran else 0.0,
        stage_ms={name: round(stages[name], 3) for name in names},
    )
