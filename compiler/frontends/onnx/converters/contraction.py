"""Sums of products: MatMul, Gemm, Conv, ConvTranspose, DeformConv, Einsum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.frontends.onnx.converters.common import aligned, cast, unsqueeze
from compiler.frontends.onnx.converters.windows import per_dim, window_attributes
from compiler.frontends.onnx.site import Site, converts
from compiler.ir import F32, ElementType, Value
from compiler.ops.contraction import Conv, MatMul
from compiler.ops.conv_transpose import ConvTranspose
from compiler.ops.deform_conv import DeformConv
from compiler.ops.einsum import Einsum
from compiler.ops.elementwise import Add, Mul
from compiler.ops.movement import Transpose

if TYPE_CHECKING:
    from collections.abc import Sequence


@converts("MatMul")
def matmul(site: Site) -> Value:
    """numpy.matmul's rule for vectors and leading dims."""
    return site.b(MatMul, site.input(0), site.input(1))


def _wide(element: ElementType) -> ElementType:
    """The type in which a product goes on to be scaled and added to: one rounding at the result."""
    return F32 if element.is_float and element.bits < F32.bits else element


def _scaled(site: Site, value: Value, factor: float, name: str) -> Value:
    if factor == 1:
        return value
    if not value.tensor.element.is_float and factor != int(factor):
        site.refuse(f"a factor of {factor} for {value.tensor.element}", name)
    return site.b(Mul, value, site.scalar_like(factor, value))


@converts("Gemm")
def gemm(site: Site) -> Value:
    """Product times alpha, plus C times beta. C broadcasts, before version 7 by attribute, and is optional since 11."""
    a, b = site.input(0), site.input(1)
    for operand in (a, b):
        if operand.tensor.dims is not None and site.rank(operand) != 2:
            site.bad_shape(f"operand {operand.type} has rank {site.rank(operand)}; expected matrices")
    element = a.tensor.element
    wide = _wide(element)
    left = site.b(Transpose, a, permutation=(1, 0)) if site.attribute("transA") else a
    right = site.b(Transpose, b, permutation=(1, 0)) if site.attribute("transB") else b
    to: dict[str, Any] = {} if wide is element else {"to": wide}
    product = _scaled(site, site.b(MatMul, left, right, **to), site.attribute("alpha"), "alpha")
    addend = site.optional(2)
    if addend is not None and site.attribute("beta") != 0:
        addend = aligned(site, product, addend) if "broadcast" in site.attributes else addend
        addend = _scaled(site, cast(site, addend, wide), site.attribute("beta"), "beta")
        product = site.b(Add, product, addend)
    return cast(site, product, element)


def add_bias(site: Site, value: Value, bias: Value | None) -> Value:
    """One addend a channel (dim 1)."""
    if bias is None:
        return value
    return site.b(Add, value, unsqueeze(site, bias, tuple(range(1, site.rank(value) - 1))))


@converts("Conv")
def conv(site: Site) -> Value:
    """Convolution and bias, rounded once."""
    x, w = site.input(0), site.input(1)
    spatial = site.rank(w) - 2
    check_kernel(site, w.tensor.known_dims[2:])
    element = x.tensor.element
    wide = _wide(element) if site.has(2) else element
    to: dict[str, Any] = {} if wide is element else {"to": wide}
    result = site.b(Conv, x, w, groups=site.attribute("group"), **window_attributes(site, spatial), **to)
    bias = site.optional(2)
    return cast(site, add_bias(site, result, None if bias is None else cast(site, bias, wide)), element)


@converts("ConvTranspose")
def conv_transpose(site: Site) -> Value:
    """The transpose of a convolution, and a bias, rounded once."""
    x, w = site.input(0), site.input(1)
    element = x.tensor.element
    wide = _wide(element) if site.has(2) else element
    to: dict[str, Any] = {} if wide is element else {"to": wide}
    spatial = site.rank(w) - 2
    check_kernel(site, w.tensor.known_dims[2:])
    # Some exporters give the whole shape, batch and channels included.
    output_shape = tuple(site.attribute("output_shape") or ())[-spatial:]
    result = site.b(
        ConvTranspose,
        x,
        w,
        groups=site.attribute("group"),
        output_padding=per_dim(site, "output_padding", spatial, 0),
        output_shape=output_shape,
        **window_attributes(site, spatial),
        **to,
    )
    bias = site.optional(2)
    return cast(site, add_bias(site, result, None if bias is None else cast(site, bias, wide)), element)


@converts("DeformConv")
def deform_conv(site: Site) -> Value:
    """A convolution whose taps are moved, and a bias."""
    x, w, offset, mask = site.input(0), site.input(1), site.input(2), site.optional(4)
    check_kernel(site, w.tensor.known_dims[2:])
    groups = {"groups": site.attribute("group"), "offset_groups": site.attribute("offset_group")}
    result = site.b(DeformConv, x, w, offset, mask, **groups, **window_attributes(site, site.rank(w) - 2))
    return add_bias(site, result, site.optional(3))


def check_kernel(site: Site, sizes: Sequence[int | str]) -> None:
    """The attribute ``kernel_shape`` repeats the weight's spatial sizes. Raises InvalidModel where it does not."""
    said = site.attribute("kernel_shape")
    if said is None:
        return
    fits = len(said) == len(sizes) and all(
        not isinstance(found, int) or found == wanted for found, wanted in zip(sizes, said, strict=True)
    )
    if not fits:
        site.bad_attribute(f"attribute 'kernel_shape' is {list(said)}, and the weight has {list(sizes)}")


@converts("Einsum")
def einsum(site: Site) -> Value:
    """A sum of products by an equation."""
    return site.b(Einsum, *site.given, equation=site.attribute("equation"))
