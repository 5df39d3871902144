"""What is tried: a light description that collection and records need, and the loaded case that is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from onnx import ModelProto

from conformance.backends.protocol import Program
from conformance.comparison import Output
from conformance.native import Native


@dataclass(frozen=True, slots=True)
class CaseInfo:
    """One case before anything is built; made for every id at collection, so it holds no data.

    `source` is whatever the suite needs to load the case: picklable, as it goes to the process that runs it.
    `refusals` are diagnoses by which a case may be refused without an entry in the expectations. `extra`
    cases run with --full alone.
    """

    id: str
    suite: str
    operator: str
    framework: str = "onnx"
    domain: str = "ai.onnx"
    since_version: int = 0
    opset: int = 0
    dtype: str = ""
    attributes: dict[str, object] = field(default_factory=dict)
    shapes: tuple[object, ...] = ()
    data_class: str = ""
    input_mode: str = ""
    source: object = None
    refusals: frozenset[str] = frozenset()
    extra: bool = False


@dataclass(frozen=True, slots=True)
class Composites:
    """Composites that a canonical graph has at least, by name, and those that it must not have.

    A case with them is run decomposed too, as its pieces, and held to the same bound.
    """

    expected: Mapping[str, int]
    never: frozenset[str] = frozenset()

    def problem(self, found: Mapping[str, int]) -> str:
        """What is wrong with the composites of a canonical graph, or ""."""
        missing = [f"{name} {found.get(name, 0)} of {count}" for name, count in self.expected.items()
                   if found.get(name, 0) < count]  # fmt: skip
        wrong = [name for name in sorted(self.never) if found.get(name, 0)]
        said = [f"not recognized: {', '.join(missing)}"] if missing else []
        said += [f"recognized where it is none: {', '.join(wrong)}"] if wrong else []
        return "; ".join(said)


@dataclass(frozen=True, slots=True)
class LoadedCase:
    """A case ready to run: the model, its inputs in order, the class that judges it, and what oracles may use.

    `computed` is a class measured from exact references, which decides where `tolerance` is a rule about rounded
    expected values and calls a result wrong. `must_fail` cases have a broken model: right is a refusal with a named
    diagnosis, of the class `diagnosis` where the case says which and the backend names its refusals as we do. `files`
    is the folder of a case that is about files, `model.onnx` the one to open. A case of another framework has `native`
    for a model. `program` runs instead of what the backend compiles, where a case is about another way to run it, and
    passes too where it agrees with the oracles whose names start with `original`. `composites` says what a
    compiler that tells should have made of the case; one that is `timing_only` has no inputs, and its costs alone are
    recorded.
    """

    model: ModelProto | None
    inputs: Sequence[Output]
    tolerance: str
    twin: tuple[ModelProto, Sequence[Output]] | None = None
    expected: Sequence[Output] | None = None
    ruling: str | None = None
    rule: str | None = None
    computed: str | None = None
    must_fail: bool = False
    diagnosis: str | None = None
    files: Mapping[str, bytes] | None = None
    native: Native | None = None
    program: Program | None = None
    original: str | None = None
    composites: Composites | None = None
    timing_only: bool = False


class Suite(Protocol):
    """A source of cases. Instances are made once a process and hold what they have loaded."""

    name: ClassVar[str]
    time_limit: ClassVar[float]
    """Seconds that a case may take by default."""

    def prepare(self, say: Callable[[str], None]) -> None:
        """Make ready what every process will need (downloads, caches); `say` puts a line on the terminal."""

    def cases(self) -> Iterator[CaseInfo]:
        """Yield every case in a fixed order."""

    def load(self, info: CaseInfo) -> LoadedCase:
        """Build a case. Raises `Unavailable` when it cannot be had here: the case is then `not_run`."""

    def reproducer(self, info: CaseInfo) -> str | None:
        """Return standalone Python source that runs the case, or None where there is none."""
