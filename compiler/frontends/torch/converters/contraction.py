"""Products of matrices, convolutions, attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compiler.frontends.torch.converters.common import (
    cast,
    concat,
    expand,
    number,
    operand,
    rank_of,
    reshape,
    reshape_to,
    shape_of,
    squeeze,
    swap,
    unsqueeze,
)
from compiler.frontends.torch.converters.unary import wide
from compiler.frontends.torch.site import Site, converts
from compiler.ir import Value
from compiler.ops.attention import Attention
from compiler.ops.contraction import Conv, DotGeneral, MatMul
from compiler.ops.conv_transpose import ConvTranspose
from compiler.ops.einsum import Einsum
from compiler.ops.elementwise import Add, Mul
from compiler.ops.reduce import ReduceSum

if TYPE_CHECKING:
    from collections.abc import Sequence


@converts("mm", "bmm", "matmul", "mv", "dot", "linalg_matmul")
def matmul(site: Site) -> Value:
    """Numpy's matmul."""
    names = [name for name in ("self", "tensor", "mat2", "other", "vec") if name in site.arguments]
    return site.op(MatMul, site.value(names[0]), site.value(names[1]))


@converts("linear")
def linear(site: Site) -> Value:
    """x W^T + b."""
    x, w, b = site.value("input"), site.value("weight"), site.get("bias")
    w = swap(site, w, 0, 1) if rank_of(w) == 2 else w
    return _plus(site, x, w, b)


def _plus(site: Site, a: Value, b: Value, bias: Value | None) -> Value:
    """a b + bias, rounded once."""
    element = a.tensor.element
    if bias is None:
        return site.op(MatMul, a, b)
    inner = wide(element)
    product = site.op(MatMul, a, b) if inner is element else site.op(MatMul, a, b, to=inner)
    return cast(site, site.op(Add, product, cast(site, bias, inner)), element)


@converts("addmm", "addmv", "baddbmm", "addbmm", "addr", "sspaddmm")
def add_product(site: Site) -> Value:
    """beta self + alpha (a b)."""
    pairs = (("mat1", "mat2"), ("mat", "vec"), ("batch1", "batch2"), ("vec1", "vec2"))
    first, second = next(pair for pair in pairs if pair[0] in site.arguments)
    a, b = site.value(first), site.value(second)
    element = site.element()
    inner = wide(element)
    if site.operator.startswith("aten.addr"):
        a, b = unsqueeze(site, a, (1,)), unsqueeze(site, b, (0,))
    product = site.op(
        MatMul, cast(site, a, element), cast(site, b, element), **({} if inner is element else {"to": inner})
    )
    if site.operator.startswith("aten.addbmm"):
        product = site.op(ReduceSum, product, axes=(0,), keep_dims=False)
    product = _times(site, product, site["alpha"])
    if site["beta"] == 0:
        # What self holds does not matter then, NaN included.
        return cast(site, product, element)
    own = _times(site, cast(site, cast(site, site.value("self"), element), inner), site["beta"])
    return cast(site, site.op(Add, product, own), element)


def _times(site: Site, value: Value, factor: Any) -> Value:  # noqa: ANN401 - a number, perhaps symbolic
    if not isinstance(factor, Value) and factor == 1:
        return value
    return site.op(Mul, value, operand(site, factor, value.tensor.element))


@converts("outer", "ger")
def outer(site: Site) -> Value:
    """Every product of two vectors' elements."""
    element = site.element()
    a, b = cast(site, site.value("self"), element), cast(site, site.value("vec2"), element)
    return site.op(Mul, unsqueeze(site, a, (1,)), unsqueeze(site, b, (0,)))


@converts("inner")
def inner_product(site: Site) -> Value:
    """Sum over the last dims of both."""
    a, b = site.value("self"), site.value("other")
    if 0 in (rank_of(a), rank_of(b)):
        return site.op(Mul, a, b)
    return site.op(DotGeneral, a, b, a_contract=(rank_of(a) - 1,), b_contract=(rank_of(b) - 1,))


@converts("tensordot")
def tensordot(site: Site) -> Value:
    """Sum over some dims of both."""
    a, b = site.value("self"), site.value("other")
    left = tuple(site.axis(axis, rank_of(a)) for axis in site["dims_self"])
    right = tuple(site.axis(axis, rank_of(b)) for axis in site["dims_other"])
    return site.op(DotGeneral, a, b, a_contract=left, b_contract=right)


@converts("einsum")
def einsum(site: Site) -> Value:
    """By an equation."""
    return site.op(Einsum, *site["tensors"], equation=site["equation"].replace(" ", ""))


@converts("bilinear")
def bilinear(site: Site) -> Value:
    """y_o = a W_o b + bias_o."""
    a, b, w = site.value("input1"), site.value("input2"), site.value("weight")
    result = site.op(Einsum, a, w, b, equation="...i,oij,...j->...o")
    return result if site.get("bias") is None else site.op(Add, result, site.value("bias"))


def _per_dim(values: Any, spatial: int) -> tuple[int, ...]:  # noqa: ANN401
    found = [values] if isinstance(values, int) else list(values)
    return tuple(found * spatial if len(found) == 1 else found)


def _with_bias(site: Site, result: Value, bias: Value | None, element: Any) -> Value:  # noqa: ANN401
    if bias is None:
        return cast(site, result, element)
    own = cast(site, bias, result.tensor.element)
    own = unsqueeze(site, own, tuple(range(1, rank_of(result) - 1)))
    return cast(site, site.op(Add, result, own), element)


_CONVOLUTIONS: Final = ("conv1d", "conv2d", "conv3d")


def _same(x: Value, w: Value, dilation: Sequence[int]) -> list[int]:
    """Margins that keep sizes at stride 1: the greater half behind."""
    totals = [d * (int(k) - 1) for d, k in zip(dilation, w.tensor.shape[2:], strict=True)]
    del x
    return [total // 2 for total in totals] + [total - total // 2 for total in totals]


@converts(
    *[f"{name}.{overload}" for name in _CONVOLUTIONS for overload in ("default", "padding")],
    "convolution",
    "_convolution",
    "conv_transpose1d",
    "conv_transpose2d.input",
    "conv_transpose3d.input",
    "conv_depthwise3d",
)
def convolution(site: Site) -> Value:
    """Convolutions and transposed ones of any number of dims, with or without a batch."""
    x, w, bias = site.value("input"), site.value("weight"), site.get("bias")
    spatial = rank_of(w) - 2
    batched = rank_of(x) == spatial + 2
    x = x if batched else unsqueeze(site, x, (0,))
    dilation = _per_dim(site.get("dilation", 1), spatial)
    padding: Any = site.get("padding", 0)
    if isinstance(padding, str):
        pads = _same(x, w, dilation) if padding == "same" else [0] * (2 * spatial)
    else:
        pads = (
            list(_per_dim([site.integer(item) for item in padding] if isinstance(padding, list) else padding, spatial))
            * 2
        )
    element = x.tensor.element
    inner = wide(element) if bias is not None else element
    attributes: dict[str, Any] = {
        "strides": _per_dim(site.get("stride", 1), spatial),
        "dilations": dilation,
        "pads": tuple(pads),
        "groups": site["groups"],
        **({} if inner is element else {"to": inner}),
    }
    transposed = site.get("transposed", "transpose" in site.operator)
    if transposed:
        attributes["output_padding"] = _per_dim(site.get("output_padding", 0), spatial)
    result = site.op(ConvTranspose if transposed else Conv, x, w, **attributes)
    result = _with_bias(site, result, bias, element)
    return result if batched else squeeze(site, result, (0,))


@converts("scaled_dot_product_attention")
def attention(site: Site) -> Value:
    """softmax(scale q k^T + mask) v, kept whole; a query that sees no key gives zeros."""
    q, k, v, mask = site.value("query"), site.value("key"), site.value("value"), site.get("attn_mask")
    if site["dropout_p"]:
        site.refuse("dropout, which is random", "dropout_p")
    rank = rank_of(q)
    operands = [_rank_four(site, value) for value in (q, k, v)]
    if mask is not None:
        mask = _mask(site, mask, rank)
    attributes: dict[str, Any] = {} if site.get("scale") is None else {"scale": float(site["scale"])}
    result = site.op(Attention, *operands, mask, causal=bool(site["is_causal"]), **attributes)
    if rank == 4:
        return result
    if rank == 3:
        return squeeze(site, result, (1,))
    shape = concat(site, [shape_of(site, q, 0, rank - 1), shape_of(site, v, rank - 1, rank)], 0)
    return reshape_to(site, result, site.folded(shape))


def _rank_four(site: Site, value: Value) -> Value:
    """Batch, heads, length, size: dims put in or, before the last three, joined."""
    rank = rank_of(value)
    if rank == 3:
        return unsqueeze(site, value, (1,))
    if rank == 2:
        return unsqueeze(site, value, (0, 1))
    if rank > 4:
        return reshape(site, value, [-1, *site.sizes(value)[-3:]])
    return value


def _mask(site: Site, mask: Value, rank: int) -> Value:
    if rank == 3 and rank_of(mask) == 3:
        return unsqueeze(site, mask, (1,))
    if rank > 4 and rank_of(mask) > 2:
        q = site.value("query")
        lead = list(site.sizes(q)[:-2])
        wide_mask = expand(site, mask, site.integers(*lead, 1, 1))
        return reshape(site, wide_mask, [-1, lead[-1], *site.sizes(mask)[-2:]])
    return mask


@converts("_cdist_forward", "cdist")
def cdist(site: Site) -> Value:
    """Distances of all pairs of rows."""
    from compiler.frontends.torch.converters.reduce import norm
    from compiler.ops.elementwise import Sub

    a, b = site.value("x1"), site.value("x2")
    element = site.element()
    left, right = unsqueeze(site, a, (rank_of(a) - 1,)), unsqueeze(site, b, (rank_of(b) - 2,))
    difference = site.op(Sub, cast(site, left, element), cast(site, right, element))
    return norm(site, difference, float(site["p"]), (rank_of(difference) - 1,), keep=False)


@converts("_pdist_forward", "pdist")
def pdist(site: Site) -> Value:
    """Distances of each pair of rows, once."""
    import numpy as np

    from compiler.frontends.torch.converters.reduce import norm
    from compiler.ops.elementwise import Sub
    from compiler.ops.indexing import Gather

    x = site.value("self")
    first, second = (site.b.constant(places.astype(np.int64)) for places in np.triu_indices(site.size(x, 0), 1))
    difference = site.op(Sub, site.op(Gather, x, first, axis=0), site.op(Gather, x, second, axis=0))
    return norm(site, difference, float(site["p"]), (1,), keep=False)


@converts("cosine_similarity")
def cosine_similarity(site: Site) -> Value:
    """a b / (max(|a|, eps) max(|b|, eps)), each by itself, as torch has it since 2.0."""
    from compiler.ops.elementwise import Div, Max, Sqrt

    element = site.element()
    inner = wide(element)
    a, b = (cast(site, cast(site, site.value(name), element), inner) for name in ("x1", "x2"))
    rank = max(rank_of(a), rank_of(b))
    axis = site.axis(site["dim"], rank)
    a, b = (unsqueeze(site, value, tuple(range(rank - rank_of(value)))) for value in (a, b))
    a, b = expand(site, a, shape_of(site, b)), expand(site, b, shape_of(site, a))
    parts = []
    for value in (a, b):
        size = site.op(Sqrt, site.op(ReduceSum, site.op(Mul, value, value), axes=(axis,), keep_dims=True))
        parts.append(site.op(Div, value, site.op(Max, size, number(site, site["eps"], inner))))
    product = site.op(Mul, parts[0], parts[1])
    return cast(site, site.op(ReduceSum, product, axes=(axis,), keep_dims=False), element)


@converts("kron")
def kron(site: Site) -> Value:
    """Every product of two elements, block by block."""
    element = site.element()
    a, b = (cast(site, site.value(name), element) for name in ("self", "other"))
    rank = max(rank_of(a), rank_of(b))
    a, b = (unsqueeze(site, value, tuple(range(rank - rank_of(value)))) for value in (a, b))
    sizes = [m * n for m, n in zip(site.sizes(a), site.sizes(b), strict=True)]
    left = unsqueeze(site, a, tuple(2 * i + 1 for i in range(rank)))
    right = unsqueeze(site, b, tuple(2 * i for i in range(rank)))
    return reshape(site, site.op(Mul, left, right), sizes)
