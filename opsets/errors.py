"""The one refusal of this package."""

from __future__ import annotations


class ManifestError(ValueError):
    """A manifest that cannot be used. The message is one line: ``file:line: key: found, expected``."""
