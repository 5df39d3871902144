"""Normalizations: softmax and its kin, and norms by mean and variance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compiler.frontends.onnx.converters.common import matrix, reshape, reshape_like
from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ir import Definition, ElementType, Value
from compiler.onnx_types import element_from
from compiler.ops import normalization as norms
from compiler.ops.softmax import Hardmax, LogSoftmax, Softmax

if TYPE_CHECKING:
    from compiler.frontends.onnx.site import Converter

_ALONG_AXIS: Final[dict[str, type[Definition]]] = {
    "Hardmax": Hardmax,
    "LogSoftmax": LogSoftmax,
    "Softmax": Softmax,
}


def _over_matrix(definition: type[Definition]) -> Converter:
    """Before version 13 the input is taken as a matrix: all dims from ``axis`` on are normalized together.

    Negative axes are named in the text from version 11 on alone, and used by exporters before it: none forbids them.
    """

    def convert(site: Site) -> Value:
        x = site.input(0)
        rank, axis = site.rank(x), site.attribute("axis")
        axis = axis if axis == rank else site.axis(axis, rank)
        if axis == rank - 1:
            return site.b(definition, x, axis=axis)
        return reshape_like(site, site.b(definition, matrix(site, x, axis), axis=1), x)

    return convert


def _along_axis(definition: type[Definition]) -> Converter:
    def convert(site: Site) -> Value:
        x = site.input(0)
        return site.b(definition, x, axis=site.axis_of(x, site.attribute("axis")))

    return convert


for _name, _definition in _ALONG_AXIS.items():
    converts(_name, until=11)(_over_matrix(_definition))
    converts(_name, since=13)(_along_axis(_definition))


def _compute_type(site: Site, x: ElementType) -> dict[str, Any]:
    """The type that ``stash_type`` sets for the statistics; nothing where it is that of x."""
    number = site.attribute("stash_type")
    found = x if number is None else element_from(number, f"attribute 'stash_type' of node '{site.node}'")
    return {} if found is x else {"compute_type": found}


@converts("LayerNormalization")
def layer_normalization(site: Site) -> Results:
    """Mean and inverse deviation are further outputs, in the type that ``stash_type`` names."""
    x = site.input(0)
    statistics = site.wants(1) or site.wants(2)
    return site.b.op(
        norms.LayerNorm,
        [x, site.input(1), site.optional(2)],
        axis=site.axis_of(x, site.attribute("axis")),
        epsilon=site.attribute("epsilon"),
        statistics=statistics,
        **_compute_type(site, x.tensor.element),
    )


@converts("RMSNormalization")
def rms_normalization(site: Site) -> Value:
    """Root mean square over the dims from ``axis`` on."""
    x = site.input(0)
    return site.b(
        norms.RmsNorm,
        x,
        site.input(1),
        axis=site.axis_of(x, site.attribute("axis")),
        epsilon=site.attribute("epsilon"),
        **_compute_type(site, x.tensor.element),
    )


@converts("GroupNormalization")
def group_normalization(site: Site) -> Value:
    """Scale and bias have one entry a group in version 18, one a channel since 21."""
    x, groups = site.input(0), site.attribute("num_groups")
    scale, bias = site.input(1), site.input(2)
    if site.rank(x) < 2:
        site.bad_shape(f"x is {x.type}; expected a batch of channels")
    for vector in (scale, bias):
        size = vector.tensor.dims[0] if vector.tensor.dims else None
        wanted = groups if site.version < 21 else x.tensor.known_dims[1]
        if isinstance(size, int) and isinstance(wanted, int) and size != wanted:
            site.bad_shape(f"scale or bias has {size} entries; expected {wanted}")
    return site.b(
        norms.GroupNorm,
        x,
        scale,
        bias,
        num_groups=groups,
        epsilon=site.attribute("epsilon"),
        **_compute_type(site, x.tensor.element),
    )


@converts("InstanceNormalization")
def instance_normalization(site: Site) -> Value:
    """Mean and variance of each channel of each instance."""
    return site.b(norms.InstanceNorm, *site.given[:3], epsilon=site.attribute("epsilon"))


@converts("BatchNormalization")
def batch_normalization(site: Site) -> Results:
    """Given statistics in inference; in training x's own, and running ones as outputs.

    Training is said by ``is_test`` 0 before version 7, by outputs beyond the first until 14, then by an attribute. With
    ``spatial`` 0 (before version 9) each activation has statistics of its own.
    """
    if site.version < 7:
        training = not site.attribute("is_test")
    elif site.version < 14:
        training = any(site.wants(index) for index in range(1, 5))
    else:
        training = bool(site.attribute("training_mode"))
    operands = list(site.given[:5])
    x, mean = operands[0], operands[3]
    per_activation = site.attribute("spatial") == 0
    if per_activation:
        operands = [matrix(site, x, 1), *(reshape(site, operand, (-1,)) for operand in operands[1:])]
    attributes: dict[str, Any] = {"epsilon": site.attribute("epsilon")}
    if training:
        attributes["momentum"] = site.attribute("momentum")
    results: list[Value | None] = list(
        site.b.op(norms.BatchNormTraining if training else norms.BatchNorm, operands, **attributes).results
    )
    if per_activation:
        likes = (x, mean, mean)
        results = [reshape_like(site, value, like) for value, like in zip(results, likes, strict=False) if value]
    return [*results, *[None] * (5 - len(results))]


@converts("LRN")
def local_response_normalization(site: Site) -> Value:
    """Squares of neighbouring channels."""
    return site.b(
        norms.Lrn,
        site.input(0),
        size=site.attribute("size"),
        alpha=site.attribute("alpha"),
        beta=site.attribute("beta"),
        bias=site.attribute("bias"),
    )


@converts("MeanVarianceNormalization")
def mean_variance_normalization(site: Site) -> Value:
    """Over chosen axes, by default all but the channels."""
    x = site.input(0)
    return site.b(norms.MeanVarianceNorm, x, axes=site.axes(site.attribute("axes"), site.rank(x)))


@converts("LpNormalization")
def lp_normalization(site: Site) -> Value:
    """By the sum of magnitudes (p = 1) or the root of the sum of squares (p = 2)."""
    x, p = site.input(0), site.attribute("p")
    if p not in {1, 2}:
        site.bad_attribute(f"attribute 'p' is {p}; expected 1 or 2")
    return site.b(norms.LpNorm, x, axis=site.axis_of(x, site.attribute("axis")), p=p)
