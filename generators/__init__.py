"""How a test model is made: manifests to cases, cases to readable source, source to models and inputs."""

from generators.case import Case
from generators.expand import case_by_id, expand, input_elements, names_of, set_attributes, special_elements
from generators.render import build, render, twin

__all__ = [
    "Case",
    "build",
    "case_by_id",
    "expand",
    "input_elements",
    "names_of",
    "render",
    "set_attributes",
    "special_elements",
    "twin",
]
