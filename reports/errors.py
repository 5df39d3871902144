"""What can go wrong between a records file and a report."""


class ReportError(Exception):
    """A records file, or a request about one, that can't be served; the message is one line for the user."""


class UnknownSchema(ReportError):
    """Records written by a newer release, whose fields this one does not know."""


class NoRecords(ReportError):
    """A path that holds no record at all."""


class BadQuery(ReportError):
    """SQL that DuckDB refuses."""
