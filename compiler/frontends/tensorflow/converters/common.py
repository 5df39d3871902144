"""What converters share: formulas in a wide type, layouts of images, axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compiler.frontends.assembly import cast, transpose
from compiler.frontends.tensorflow.site import Converter, Site, converts
from compiler.ops.compose import Emit, widened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from compiler.ir import Definition, Value

CHANNELS_FIRST: Final = frozenset({"NCHW", "NCDHW", "NCW", "CHANNELS_FIRST"})


def computed(site: Site, formula: Callable[..., Value], *values: Value) -> Value:
    """A formula ``formula(emit, *values)`` over the inputs, rounded once: floats below 32 bits go through float32."""
    given = values or tuple(site.values)
    result = formula(Emit(site.b), *[cast(site, value, widened(value.tensor.element)) for value in given])
    return cast(site, result, site.element())


def formulas(table: Mapping[str, Callable[..., Value]]) -> None:
    """Enter converters that are one formula over their inputs."""

    def of(formula: Callable[..., Value]) -> Converter:
        return lambda site: computed(site, formula)

    for name, formula in table.items():
        converts(name)(of(formula))


def direct(table: Mapping[str, type[Definition]]) -> None:
    """Enter converters that are one operator of the IR over their inputs."""

    def of(definition: type[Definition]) -> Converter:
        return lambda site: site.op(definition, *site.values)

    for name, definition in table.items():
        converts(name)(of(definition))


def axis_of(site: Site, axis: int, rank: int) -> int:
    """An axis counted from the front. Raises UnsupportedOperator for one outside."""
    if not -max(rank, 1) <= axis < max(rank, 1):
        site.refuse(f"axis {axis} is outside of rank {rank}")
    return axis % max(rank, 1)


def axes_of(site: Site, axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, ascending, each once."""
    return tuple(sorted({axis_of(site, axis, rank) for axis in axes})) if rank else ()


def is_channels_first(site: Site, attribute: str = "data_format") -> bool:
    """Whether images come as [N, C, *S]; else they are [N, *S, C]. Raises UnsupportedOperator for other layouts."""
    layout = site.attr(attribute)
    if layout not in CHANNELS_FIRST | {"NHWC", "NDHWC", "NWC", "CHANNELS_LAST"}:
        site.refuse(f"layout {layout} has no conversion", attribute)
    return layout in CHANNELS_FIRST


def to_channels_first(site: Site, x: Value) -> Value:
    """[N, *S, C] -> [N, C, *S]."""
    rank = site.rank(x)
    return transpose(site, x, (0, rank - 1, *range(1, rank - 1)))


def to_channels_last(site: Site, x: Value) -> Value:
    """[N, C, *S] -> [N, *S, C]."""
    rank = site.rank(x)
    return transpose(site, x, (0, *range(2, rank), 1))


def as_images(site: Site, x: Value, convert: Callable[[Value], Value]) -> Value:
    """``convert`` of [N, C, *S] for images in the node's layout."""
    if is_channels_first(site):
        return convert(x)
    return to_channels_last(site, convert(to_channels_first(site, x)))


def spatial(site: Site, numbers: Sequence[int], what: str, *, first: bool) -> tuple[int, ...]:
    """The entries of the spatial dims of a list with one a dim. Raises UnsupportedOperator where others are not 1."""
    if not numbers:
        return ()
    outer = (numbers[0], numbers[1]) if first else (numbers[0], numbers[-1])
    if outer != (1, 1):
        site.refuse(f"{list(numbers)} has entries for batch and channels that are not 1", what)
    return tuple(numbers[2:] if first else numbers[1:-1])
