"""What can be wrong with a request to the suite; each message is one line for the user."""

from __future__ import annotations


class ConformanceError(Exception):
    """Base of the suite's own refusals: bad options, bad expectation files, unknown classes."""


class UnknownBackend(ConformanceError):
    """A backend that cannot be found, or that follows neither of the two protocols."""


class UnknownToleranceClass(ConformanceError):
    """A tolerance class that has no definition; there is no class by default."""


class BadExpectations(ConformanceError):
    """An expectations file that breaks its form."""


class BadSelection(ConformanceError):
    """An option of the command line whose value selects nothing that exists."""


class Unavailable(ConformanceError):
    """An oracle, a package or a model that can't be had here; the message says why."""


class MutationError(ConformanceError):
    """The mutation check itself failed: cases could not be recorded, or the compiler could not be imported."""
