"""A run in a screenful: totals, reach, where cases break and why. Renderables only; the caller prints them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reports.diff import Change, Difference
from reports.html import GLYPHS
from reports.summary import Reach, Summary

_STYLES = {
    "passed": "green",
    "accelerator": "green",
    "quality_warning": "yellow",
    "mixed": "yellow",
    "unsupported": "yellow",
    "host": "yellow",
    "wrong_result": "bold red",
    "crash": "bold red",
    "error": "red",
    "timeout": "red",
    "oracle_disagreement": "blue",
}
_LONGEST_LIST = 15


def summary_text(summary: Summary) -> RenderableType:
    """Return the terminal summary of a run."""
    parts: list[RenderableType] = [_heading(summary), _counts(summary), _reach(summary)]
    if summary.reasons:
        parts.append(_reasons(summary))
    if summary.rulings:
        parts += [
            Text(f"{len(summary.disagreements)} cases in which references differ:", style="bold"),
            _rulings(summary),
        ]
    if summary.unexpected:
        parts.append(Text(f"{len(summary.unexpected)} cases ended otherwise than expected:", style="bold"))
        parts.extend(
            Text(f"  {entry.case_id}: expected {entry.expected}, found {entry.found} at {entry.stage}")
            for entry in summary.unexpected[:_LONGEST_LIST]
        )
        if len(summary.unexpected) > _LONGEST_LIST:
            parts.append(Text(f"  and {len(summary.unexpected) - _LONGEST_LIST} more"))
    parts.extend(Text(note) for note in summary.notes)
    if summary.unreadable:
        parts.append(Text(f"{len(summary.unreadable)} lines could not be read: {summary.unreadable[0]}", style="red"))
    return Group(*parts)


def _heading(summary: Summary) -> Text:
    cost = summary.cost
    return Text(
        f"run {', '.join(summary.runs)}: {summary.cases:,} cases, {', '.join(summary.configurations)}, "
        f"{cost.cpu_ms_per_case:.1f} ms of CPU a case"
    )


def _counts(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("outcome")
    table.add_column("cases", justify="right")
    table.add_column("share", justify="right")
    for counts in (summary.outcomes, summary.placements):
        for name, number in counts.items():
            label = f"  on {name}" if counts is summary.placements else f"{GLYPHS[name]} {name.replace('_', ' ')}"
            table.add_row(
                Text(label, style=_STYLES.get(name, "")), f"{number:,}", f"{100 * summary.share(number):.1f} %"
            )
    return table


def _reach(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False)
    for column, justify in (("", "left"), ("passed", "right"), ("tried", "right"), ("exist", "right")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    rows: Sequence[tuple[str, Reach]] = (
        ("operators", summary.operators),
        ("operator versions", summary.pairs),
        ("version and type", summary.cells),
    )
    for label, reach in rows:
        table.add_row(label, f"{reach.passed:,}", f"{reach.tried:,}", f"{reach.total:,}")
    return table


def _reasons(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("cases", justify="right")
    table.add_column("outcome")
    table.add_column("stage")
    table.add_column("why", overflow="fold")
    for reason in summary.reasons[:_LONGEST_LIST]:
        why = ": ".join(part for part in (reason.diagnosis, reason.reason) if part) or reason.example
        table.add_row(
            str(reason.cases), Text(reason.outcome, style=_STYLES.get(reason.outcome, "")), reason.stage, Text(why)
        )
    return table


def _rulings(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False)
    for column, justify in (("cases", "right"), ("operator", "left"), ("follows the specification", "left")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    table.add_column("rule", overflow="fold")
    for ruled in summary.rulings:
        table.add_row(str(ruled.cases), ruled.operator, ruled.follows or "no ruling", Text(ruled.rule))
    return table


def difference_text(difference: Difference) -> RenderableType:
    """Return the terminal form of what changed between two runs."""
    parts: list[RenderableType] = [
        Text(f"from run {', '.join(difference.old_runs)} to run {', '.join(difference.new_runs)}")
    ]
    if difference.suite_changed:
        parts.append(Text("the suite itself changed: changed cases of the two suites are listed apart", style="yellow"))
    parts += _changes("regressions", difference.regressions, "bold red")
    parts += _changes("fixed", difference.fixed, "green")
    parts += _changes("other changes", difference.other_changes, "")
    parts += _changes("changed with the suite", difference.suite_changes, "yellow")
    for label, changes in (("slower", difference.slower), ("faster", difference.faster)):
        if changes:
            parts.append(Text(f"{label}: {len(changes)}", style="bold"))
            parts.extend(
                Text(f"  {change.case_id} on {change.target}: {change.old:,} -> {change.new:,} cycles")
                for change in changes[:_LONGEST_LIST]
            )
    parts.append(
        Text(f"the same: {difference.same:,}, added: {len(difference.added):,}, removed: {len(difference.removed):,}")
    )
    return Group(*parts)


def _changes(label: str, changes: Sequence[Change], style: str) -> Iterable[RenderableType]:
    if not changes:
        return
    yield Text(f"{label}: {len(changes)}", style=f"bold {style}".strip())
    for change in changes[:_LONGEST_LIST]:
        why = f" at {change.stage}: {change.reason}" if change.reason else f" at {change.stage}"
        yield Text(f"  {change.case_id} on {change.target}: {change.old} -> {change.new}{why}")
    if len(changes) > _LONGEST_LIST:
        yield Text(f"  and {len(changes) - _LONGEST_LIST} more")
