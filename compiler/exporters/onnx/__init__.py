"""Graphs to ONNX models of any operator set from 13 on."""

from compiler.exporters.onnx import emitters
from compiler.exporters.onnx.exporter import OLDEST, export_model
from compiler.exporters.onnx.forms import direct, exported_operators, exports, rewrites

__all__ = ["OLDEST", "direct", "emitters", "export_model", "exported_operators", "exports", "rewrites"]
