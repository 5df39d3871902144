"""Caffe networks to graphs: a prototxt and a caffemodel, without Caffe."""

from compiler.frontends.caffe.importer import import_caffe

__all__ = ["import_caffe"]
