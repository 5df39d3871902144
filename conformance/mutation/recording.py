"""Records a part of the pool: runs cases with line coverage, asks the oracles, judges. For children only."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import coverage

from conformance.case import CaseInfo, LoadedCase, Suite
from conformance.mutation.damages import DAMAGES
from conformance.mutation.edits import ROOT
from conformance.mutation.judging import judge, verdict
from conformance.mutation.pool import CASES_A_LINE, DEFAULT_TARGET, SMALL_TARGET, SUITES, Pool, PoolCase, spread
from conformance.oracles import EXPECTED, ORACLES, TWIN, Question, ask, gather_evidence
from conformance.suites import make_suite
from conformance.tolerance_names import parse_tolerance
from reports.record import Outcome

_GREEN = (str(Outcome.PASSED), str(Outcome.FOLDED))
_DAMAGED_CASES_A_KEY = 2
_SHARE_OF_TARGET = {DEFAULT_TARGET: 1, SMALL_TARGET: 8}
_ALWAYS_WHOLE = 4000
"""Suites up to this size are taken whole, whatever share of the cases is asked for."""


def record_cases(part: int, parts: int, share: int, target: str) -> Pool:
    """Return what every `parts`-th case from `part` on gives; of large suites one case in `share`."""
    warnings.simplefilter("ignore")
    measured = coverage.Coverage(
        data_file=None, config_file=False, include=[str(ROOT / "compiler" / "*")], check_preimported=False
    )
    pool = Pool()
    tried: Counter[tuple[str, str, str]] = Counter()
    measured.start()
    try:
        for suite, info in _chosen(part, parts, share, target):
            case = _recorded(suite, info, target, measured)
            if case is None:
                pool.red.append(info.id)
                continue
            key = (case.tolerance, case.dtype, case.data_class)
            if not case.must_fail and tried[key] < _DAMAGED_CASES_A_KEY:
                tried[key] += 1
                case = replace(case, damaged=_damaged(case))
            else:
                case = replace(case, outputs=None)
            pool.cases.append(case)
    finally:
        measured.stop()
    pool.lines = _lines(measured, pool)
    return pool


def _chosen(part: int, parts: int, share: int, target: str) -> Iterator[tuple[Suite, CaseInfo]]:
    share *= _SHARE_OF_TARGET[target]
    for name in SUITES[target]:
        suite = make_suite(name)
        infos = [info for info in suite.cases() if (name, info.input_mode) != ("invalid", "file")]
        keys = [(info.operator, info.dtype) for info in infos]
        order = spread(keys, name)[: -(-len(infos) // (share if len(infos) > _ALWAYS_WHOLE else 1))]
        for place in sorted(order)[part::parts]:
            yield suite, infos[place]


def _recorded(suite: Suite, info: CaseInfo, target: str, measured: coverage.Coverage) -> PoolCase | None:
    """Return the case if it passes."""
    try:
        case = with_answers(info, suite.load(info), target)
    except Exception:  # noqa: BLE001 - a case that cannot be made is red, which the suite itself shows
        return None
    measured.switch_context(info.id)
    try:
        judged = judge(case)
    finally:
        measured.switch_context("")
    if judged.outcome not in _GREEN:
        return None
    return replace(case, outcome=judged.outcome, figures=judged.figures, outputs=judged.outputs)


def with_answers(info: CaseInfo, loaded: LoadedCase, target: str = DEFAULT_TARGET) -> PoolCase:
    """Return a case of the pool, not judged yet, with what the oracles say of it."""
    assert loaded.model is not None
    question = Question(loaded.model, loaded.inputs, loaded.twin, loaded.expected)
    names = [] if loaded.must_fail else _oracles(loaded)
    answers = ask(question, names)
    evidence: dict[str, Any] = {}
    if not loaded.must_fail:
        found = gather_evidence(question, parse_tolerance(loaded.tolerance), answers)
        evidence = {name: getattr(found, name) for name in ("absolute", "ones", "baseline", "exact")}
    return PoolCase(
        id=info.id,
        target=target,
        operator=info.operator,
        dtype=info.dtype,
        data_class=info.data_class,
        since_version=info.since_version,
        input_mode=info.input_mode,
        model=loaded.model.SerializeToString(),
        inputs=loaded.inputs,
        tolerance=loaded.tolerance,
        ruling=loaded.ruling,
        must_fail=loaded.must_fail,
        diagnosis=loaded.diagnosis,
        answers=tuple((a.oracle, a.outputs, a.why, a.exact) for a in answers),
        evidence=evidence,
        outcome="",
    )


def _oracles(loaded: LoadedCase) -> list[str]:
    """Return who votes: where a suite rules that published values count, nobody else need be asked."""
    if loaded.ruling == EXPECTED:
        return [EXPECTED]
    absent = {EXPECTED} | ({TWIN} if loaded.twin is None else set())
    return [name for name in ORACLES if name not in absent]


def _damaged(case: PoolCase) -> dict[str, str]:
    assert case.outputs is not None
    return {name: verdict(case, damage(case.outputs))[0] for name, damage in DAMAGES.items()}


def _lines(measured: coverage.Coverage, pool: Pool) -> dict[str, dict[int, list[int]]]:
    data = measured.get_data()
    found: dict[str, dict[int, list[int]]] = {}
    place_of = {case.id: place for place, case in enumerate(pool.cases)}
    for file in data.measured_files():
        path = file.removeprefix(f"{ROOT}/")
        for line, contexts in data.contexts_by_lineno(file).items():
            places = sorted(place_of[context] for context in contexts if context in place_of)
            if places:
                found.setdefault(path, {})[line] = _few(places, pool, f"{path}:{line}")
    return found


def _few(places: list[int], pool: Pool, seed: str) -> list[int]:
    """Return all graphs, and of the other cases as many different ones as there is room for."""
    graphs = [place for place in places if pool.cases[place].is_graph]
    others = [place for place in places if not pool.cases[place].is_graph]
    cases = [pool.cases[place] for place in others]
    order = spread([(case.operator, case.dtype, case.data_class) for case in cases], seed)
    return [*graphs, *(others[at] for at in order[:CASES_A_LINE])]
