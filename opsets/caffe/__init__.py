"""Caffe's layers: manifests, and the list of all layer types that there are to cover."""

from opsets.caffe.manifest import Draw, Layer, LayerFile, Ruling, known_layers, load_layers, scope

__all__ = ["Draw", "Layer", "LayerFile", "Ruling", "known_layers", "load_layers", "scope"]
