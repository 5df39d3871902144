"""From a finding to a record, and what all records of a run share."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from conformance.case import CaseInfo, Suite
from conformance.judge import Finding
from conformance.vote import Judgement
from reports.record import Errors, Outcome, Record, Stage

ROOT = Path(__file__).resolve().parents[1]
_SUITE_FOLDERS = ("opsets", "generators", "conformance")
_SUITE_FILES = (".py", ".yaml", ".jinja")


@dataclass(frozen=True, slots=True)
class RunContext:
    """What every record of a run has in common."""

    run: str
    suite_hash: str
    backend: str
    versions: Mapping[str, str] = field(default_factory=dict)


def suite_hash(root: Path = ROOT) -> str:
    """Return a hash of all that decides what is tried and how it is judged: two runs compare only under one hash.

    Unit tests and expectation files are left out: they change no outcome.
    """
    digest = hashlib.blake2b(digest_size=8)
    for folder in _SUITE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in _SUITE_FILES and not path.stem.endswith("_test") and "/expectations/" not in f"/{name}":
                digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def base_versions() -> dict[str, str]:
    """Return the versions of what every run stands on."""
    found = {name: version(name) for name in ("numpy", "onnx", "onnxruntime", "ml-dtypes")}
    return {"python": platform.python_version(), **found}


def make_record(
    info: CaseInfo, finding: Finding, context: RunContext, target: str, *, cpu_ms: float, reproducer: str | None = None
) -> Record:
    """Return the record of a case."""
    judgement, report = finding.judgement or Judgement(finding.outcome), finding.report
    figures = judgement.figures
    return Record(
        run=context.run,
        suite_hash=context.suite_hash,
        versions=dict(context.versions),
        backend=context.backend,
        target=target,
        case_id=info.id,
        framework=info.framework,
        suite=info.suite,
        domain=info.domain,
        operator=info.operator,
        since_version=info.since_version,
        opset=info.opset,
        dtype=info.dtype,
        attributes=info.attributes,  # type: ignore[arg-type] # made plain by the record
        shapes=list(info.shapes),  # type: ignore[arg-type] # made plain by the record
        reached=list(finding.reached),
        data_class=info.data_class,
        input_mode=info.input_mode,
        tolerance_class=finding.tolerance,
        stage=finding.stage,
        outcome=finding.outcome,
        placement=report.placement,
        diagnosis=finding.diagnosis,
        reason=finding.reason,
        errors=Errors(max_ulp=figures.max_ulp, max_abs=figures.max_abs, max_rel=figures.max_rel, bias=figures.bias),
        oracles=judgement.oracles,
        ruling=finding.rule,
        cycles=report.cycles,
        traffic_bytes=report.traffic_bytes,
        compulsory_bytes=report.compulsory_bytes,
        energy_pj=report.energy_pj,
        peak_sram_bytes=report.peak_sram_bytes,
        operators_before=report.operators_before,
        operators_after=report.operators_after,
        utilization=dict(report.utilization),
        host_operators=list(report.host_operators),
        stage_ms=finding.stage_ms,
        cpu_ms=round(cpu_ms, 3),
        reproducer=reproducer,
    )


def write_reproducer(output: str, suite: Suite, info: CaseInfo) -> str | None:
    """Write a case's standalone source under the run's folder and return its path relative to it, or None."""
    source = suite.reproducer(info)
    if source is None:
        return None
    name = "".join(c if c.isalnum() or c in "-_.=,~+" else "_" for c in info.id)[:200]
    relative = Path("reproducers") / f"{name}.py"
    path = Path(output) / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return relative.as_posix()


def lost_case(outcome: Outcome, stage: Stage, reason: str) -> Finding:
    """Return the finding of a case whose process ended: a crash or a timeout at the last stage announced."""
    return Finding(outcome, stage, None, reason)
