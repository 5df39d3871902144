"""ONNX models to graphs: each operator version with its own meaning, refusals that name what is missing."""

from compiler.frontends.onnx.importer import import_model, import_signature
from compiler.frontends.onnx.site import converted_operators, converts

__all__ = ["converted_operators", "converts", "import_model", "import_signature"]
