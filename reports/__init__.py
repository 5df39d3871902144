"""What came out of a run: records, queries, matrices and reports. All reports are pure functions of records."""

from reports.diff import Difference, diff
from reports.errors import NoRecords, ReportError, UnknownSchema
from reports.matrix import CellKey, all_cells
from reports.record import Errors, HostOperator, Outcome, Placement, Record, Stage
from reports.store import RecordWriter, merge, read_records, write_records
from reports.summary import Summary, summarize
from reports.write import write_reports

__all__ = [
    "CellKey",
    "Difference",
    "Errors",
    "HostOperator",
    "NoRecords",
    "Outcome",
    "Placement",
    "Record",
    "RecordWriter",
    "ReportError",
    "Stage",
    "Summary",
    "UnknownSchema",
    "all_cells",
    "diff",
    "merge",
    "read_records",
    "summarize",
    "write_records",
    "write_reports",
]
