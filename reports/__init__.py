"""What came out of a run: records, queries, matrices and reports. All reports are pure functions of records."""

from reports.errors import NoRecords, ReportError, UnknownSchema
from reports.record import Errors, HostOperator, Outcome, Placement, Record, Stage
from reports.store import RecordWriter, merge, read_records, write_records

__all__ = [
    "Errors",
    "HostOperator",
    "NoRecords",
    "Outcome",
    "Placement",
    "Record",
    "RecordWriter",
    "ReportError",
    "Stage",
    "UnknownSchema",
    "merge",
    "read_records",
    "write_records",
]
