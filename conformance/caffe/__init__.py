"""Oracles for Caffe networks: OpenCV's importer, and each layer's definition in float64."""
