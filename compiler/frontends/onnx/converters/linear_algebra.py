"""Determinants and encoded images: what has no loops."""

from __future__ import annotations

from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ops.image import DecodeImage
from compiler.ops.linear_algebra import Determinant


@converts("Det")
def det(site: Site) -> Results:
    """Version 22 only takes bfloat16 as well."""
    return site.b(Determinant, site.input(0))


@converts("ImageDecoder")
def image_decoder(site: Site) -> Results:
    """Pixels of an encoded image."""
    layout = str(site.attribute("pixel_format"))
    if layout not in {"RGB", "BGR", "Grayscale"}:
        site.bad_attribute(f"attribute 'pixel_format' is '{layout}'; expected RGB, BGR or Grayscale")
    return site.b(DecodeImage, site.input(0), format=layout)
