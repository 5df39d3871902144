"""Pages with plots that need no network: tables made here, plots drawn in the page by Plotly, which stands in it.

A plot is Plotly's own JSON, `{"data": [...], "layout": {...}}`, so that what is drawn is data and can be tested.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from reports.files import atomic_text

Plot = dict[str, Any]
"""Plotly's JSON of one figure."""

COLOURS: Mapping[str, str] = {
    "matrix": "#1f77b4",
    "vector": "#2ca02c",
    "memory": "#d62728",
    "host": "#ff7f0e",
}
"""A colour for what bounds an operator; legends name it as well."""


def write_page(path: Path, template: str, plots: Mapping[str, Plot], **parts: Any) -> None:  # noqa: ANN401 - for Jinja
    """Write a page of a template that extends `plots.html.jinja`; `plots` go to the elements of their names."""
    from plotly.offline import get_plotlyjs

    page = _environment().get_template(template).render(data=embedded({"plots": plots}), plotly=get_plotlyjs(), **parts)
    with atomic_text(path) as stream:
        stream.write(page)


@cache
def _environment() -> Environment:
    loader = PackageLoader("reports")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    for name, file in {"css": "report.css", "plots_css": "plots.css", "plots_js": "plots.js"}.items():
        environment.globals[name] = loader.get_source(environment, file)[0]
    return environment


def embedded(data: object) -> str:
    """Return JSON that can stand inside a script element: nothing in it can close the element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def layout(x: str, y: str, *, logarithmic: bool = False) -> dict[str, Any]:
    """Return the layout of a plot with titled axes."""
    kind = {"type": "log"} if logarithmic else {}
    return {
        "xaxis": {"title": {"text": x}, **kind},
        "yaxis": {"title": {"text": y}, **kind},
        "margin": {"l": 60, "r": 20, "t": 20, "b": 50},
        "legend": {"orientation": "h", "y": -0.2},
        "hovermode": "closest",
    }
