"""Graphs to ONNX models at the newest operator set."""

from compiler.exporters.onnx import emitters
from compiler.exporters.onnx.emit import exported_operators, exports
from compiler.exporters.onnx.exporter import export_model

__all__ = ["emitters", "export_model", "exported_operators", "exports"]
