"""How much damage to outputs the classes see: `python -m conformance.kill_rate [--op Conv,MatMul] [--every 5]`.

Right outputs of the bundled compiler are damaged in one way at a time and judged again; a damaged output that still
passes is a survivor. A class that is too wide, or data that reaches nothing, shows here before a real fault slips by.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from conformance import widening
from conformance.backends import BackendUnderTest, default_target, load_backend
from conformance.case import CaseInfo, LoadedCase, Suite
from conformance.comparison import Output
from conformance.numerics import Kind, format_of, kind_of
from conformance.oracles import EXPECTED, ORACLES, TWIN, Question, ask, gather_evidence
from conformance.suites import make_suite
from conformance.tolerance_names import parse_tolerance
from conformance.vote import judge_outputs
from reports.record import Outcome

Array = NDArray[np.generic]
Mutant = Callable[[Array], Array | None]
"""Returns damaged data, or None where the damage does not apply to such data."""


def _scaled(array: Array) -> Array | None:
    """Every float by 1 + 2^(3-p): eight units in the last place."""
    if kind_of(array.dtype) is not Kind.FLOAT or not _finite_and_not_zero(array).any():
        return None
    factor = 1 + 2.0 ** (3 - format_of(array.dtype).mantissa_bits)
    with np.errstate(all="ignore"):
        return (array.astype(np.float64) * factor).astype(array.dtype)


def _finite_and_not_zero(array: Array) -> NDArray[np.bool_]:
    wide = array.astype(np.float64)
    return np.asarray(np.isfinite(wide) & (wide != 0), bool)


def _one_element(array: Array) -> Array | None:
    """The last element replaced by the first one."""
    if array.size < 2 or array.reshape(-1)[0] == array.reshape(-1)[-1]:
        return None
    damaged = array.copy()
    damaged.reshape(-1)[-1] = array.reshape(-1)[0]
    return damaged


def _not_a_number(array: Array) -> Array | None:
    """NaN becomes 0."""
    if kind_of(array.dtype) is not Kind.FLOAT or not np.isnan(array.astype(np.float64)).any():
        return None
    damaged = array.copy()
    damaged[np.isnan(array.astype(np.float64))] = 0
    return damaged


def _off_by_one(array: Array) -> Array | None:
    """One integer one too large, wrapping."""
    if kind_of(array.dtype) is not Kind.INTEGER or not array.size or array.dtype.kind not in "iu":
        return None
    damaged = array.copy()
    damaged.reshape(-1)[0] = np.add(array.reshape(-1)[:1], array.dtype.type(1))[0]
    return damaged


def _negated(array: Array) -> Array | None:
    """All signs changed."""
    if kind_of(array.dtype) is not Kind.FLOAT or not _finite_and_not_zero(array).any():
        return None
    return (-array.astype(np.float64)).astype(array.dtype)


def _flattened(array: Array) -> Array | None:
    """The right elements in another shape."""
    return array.reshape(-1) if array.ndim > 1 else None


MUTANTS: Mapping[str, Mutant] = {
    "scaled by 8 ulp": _scaled,
    "one element wrong": _one_element,
    "NaN becomes 0": _not_a_number,
    "integer off by one": _off_by_one,
    "negated": _negated,
    "flattened": _flattened,
}


@dataclass(slots=True)
class Tally:
    """How often a mutant was tried and seen, and the survivors by operator, type and class."""

    tried: int = 0
    killed: int = 0
    survivors: Counter[str] = field(default_factory=Counter)


def measure(suite: Suite, infos: Sequence[CaseInfo], backend: BackendUnderTest) -> dict[str, Tally]:
    """Judge every mutant of every case that passes undamaged."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for info in infos:
        try:
            case = suite.load(info)
            assert case.model is not None
            outputs = [_plain(value) for value in backend.compile(case.model).run(case.inputs)]
        except Exception:  # noqa: BLE001, S112 - a case that does not run has nothing to damage
            continue
        for name, passed in _verdicts(case, outputs):
            tally = tallies[name]
            tally.tried += 1
            tally.killed += not passed
            if passed:
                tally.survivors[f"{info.operator} {info.dtype} {case.tolerance}"] += 1
    return dict(tallies)


def _plain(value: Output) -> Output:
    return value if value is None or isinstance(value, list | dict) else np.asarray(value)


def _verdicts(case: LoadedCase, outputs: list[Output]) -> Iterator[tuple[str, bool]]:
    question = Question(case.model, case.inputs, case.twin, case.expected)
    absent = {TWIN} if case.twin is None else set()
    absent |= {EXPECTED} if case.expected is None else set()
    answers = ask(question, [name for name in ORACLES if name not in absent])
    tolerance = parse_tolerance(case.tolerance)
    evidence = gather_evidence(question, tolerance, answers)
    assert case.model is not None
    types = widening.output_types(case.model)

    def passes(values: list[Output]) -> bool:
        found = judge_outputs(values, answers, tolerance, evidence, types=types, ruling=case.ruling)
        return found.outcome is Outcome.PASSED

    if not outputs or not passes(outputs) or not isinstance(outputs[0], np.ndarray):
        return
    for name, mutant in MUTANTS.items():
        damaged = mutant(outputs[0])
        if damaged is not None and not _same(damaged, outputs[0]):
            yield name, passes([damaged, *outputs[1:]])


def _same(one: Array, other: Array) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the share of mutants that were seen, and where the others hide; 0 whatever the share."""
    parser = argparse.ArgumentParser(prog="conformance.kill_rate", description=__doc__)
    parser.add_argument("--op", default="", help="only these operators, separated by commas")
    parser.add_argument("--every", type=int, default=5, help="take every n-th case (5)")
    parser.add_argument("--survivors", type=int, default=10, help="lines of survivors a mutant (10)")
    found = parser.parse_args(arguments)
    suite = make_suite("operators")
    names = {name for name in found.op.split(",") if name}
    infos = [info for info in suite.cases() if not names or info.operator in names][:: found.every]
    tallies = measure(suite, infos, load_backend("opatlas", default_target("opatlas")))
    for name, tally in tallies.items():
        sys.stdout.write(f"{name}: {tally.killed} of {tally.tried} seen ({tally.killed / tally.tried:.1%})\n")
        for line, count in tally.survivors.most_common(found.survivors):
            sys.stdout.write(f"    {count} survive: {line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
