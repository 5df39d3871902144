"""Records as a DuckDB table: what reports count, and what anyone can ask beyond them.

The table `records` has a column for each field of `reports.record.Record`; `errors` is a struct, `oracles` and
`stage_ms` are maps, `host_operators` is a list of structs. The view `broken` has the cases that did not pass.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb

from reports.errors import BadQuery, ReportError
from reports.record import Record

_COLUMNS = {
    "schema": "INTEGER",
    "run": "VARCHAR",
    "suite_hash": "VARCHAR",
    "versions": "MAP(VARCHAR, VARCHAR)",
    "backend": "VARCHAR",
    "target": "VARCHAR",
    "case_id": "VARCHAR",
    "framework": "VARCHAR",
    "suite": "VARCHAR",
    "domain": "VARCHAR",
    "operator": "VARCHAR",
    "since_version": "INTEGER",
    "opset": "INTEGER",
    "dtype": "VARCHAR",
    "attributes": "JSON",
    "shapes": "JSON",
    "reached": "VARCHAR[]",
    "data_class": "VARCHAR",
    "input_mode": "VARCHAR",
    "tolerance_class": "VARCHAR",
    "stage": "VARCHAR",
    "outcome": "VARCHAR",
    "placement": "VARCHAR",
    "diagnosis": "VARCHAR",
    "reason": "VARCHAR",
    "errors": "STRUCT(max_ulp DOUBLE, max_abs DOUBLE, max_rel DOUBLE, bias DOUBLE)",
    "oracles": "MAP(VARCHAR, VARCHAR)",
    "ruling": "VARCHAR",
    "cycles": "HUGEINT",
    "traffic_bytes": "HUGEINT",
    "compulsory_bytes": "HUGEINT",
    "energy_pj": "DOUBLE",
    "peak_sram_bytes": "HUGEINT",
    "operators_before": "BIGINT",
    "operators_after": "BIGINT",
    "utilization": "MAP(VARCHAR, DOUBLE)",
    "host_operators": "STRUCT(operator VARCHAR, reason VARCHAR, location VARCHAR)[]",
    "stage_ms": "MAP(VARCHAR, DOUBLE)",
    "cpu_ms": "DOUBLE",
    "reproducer": "VARCHAR",
    "expected": "VARCHAR",
    "unexpected": "BOOLEAN",
}

_BROKEN = "CREATE VIEW broken AS SELECT * FROM records WHERE outcome NOT IN ('passed', 'folded', 'not_run')"


class Database:
    """An in-memory database over records; close it, or use it as a context manager."""

    def __init__(self, records: Iterable[Record]) -> None:
        # DuckDB's extensions stay what the wheel ships: a report must not reach for the network.
        options: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        self._connection = duckdb.connect(":memory:", config=options)
        columns = ", ".join(f"{name}: '{kind}'" for name, kind in _COLUMNS.items())
        with tempfile.TemporaryDirectory(prefix="opatlas-") as folder:
            path = Path(folder) / "records.jsonl"
            path.write_text("".join(record.to_line() + "\n" for record in records), encoding="utf-8")
            try:
                self._connection.execute(
                    f"CREATE TABLE records AS SELECT * FROM read_json(?, format = 'newline_delimited', columns = {{{columns}}})",  # noqa: S608, E501 - our own constant names
                    [str(path)],
                )
            except duckdb.Error as error:
                raise ReportError(
                    f"a record has a value that no column holds: {' '.join(str(error).split())}"
                ) from error
        self._connection.execute(_BROKEN)

    def rows(self, sql: str, parameters: Iterable[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises `duckdb.Error` for one that is not well-formed."""
        return self._connection.execute(sql, list(parameters)).fetchall()

    def named_rows(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a query with their column names. Raises `BadQuery` with DuckDB's reason."""
        try:
            found = self._connection.execute(sql)
        except duckdb.Error as error:
            raise BadQuery(f"the query is refused: {' '.join(str(error).split())}") from error
        # DuckDB's answer to no statement at all is None.
        if found is None:
            raise BadQuery("the query is empty; expected a statement of SQL")
        columns = [column[0] for column in found.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]

    def counts(self, sql: str) -> dict[str, int]:
        """Return a query of two columns, a name and a number, as a dictionary in the query's order."""
        return {str(name): int(number) for name, number in self.rows(sql)}

    def close(self) -> None:
        """Free the memory."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
