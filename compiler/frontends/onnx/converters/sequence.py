"""Sequences and optionals."""

from __future__ import annotations

from compiler.frontends.onnx.site import Site, converts
from compiler.ir import BOOL, F32, OptionalType, Value, tensor
from compiler.onnx_types import element_from
from compiler.ops import optional, sequence


@converts("SequenceConstruct")
def sequence_construct(site: Site) -> Value:
    """The inputs in order."""
    return site.b(sequence.SequenceConstruct, *site.given)


@converts("SequenceEmpty")
def sequence_empty(site: Site) -> Value:
    """No elements, of a type that is float32 by default."""
    number = site.attribute("dtype")
    element = F32 if number is None else element_from(number, f"attribute 'dtype' of node '{site.node}'")
    return site.b(sequence.SequenceConstruct, type=tensor(element, None))


@converts("SequenceAt")
def sequence_at(site: Site) -> Value:
    """One element."""
    return site.b(sequence.SequenceAt, *site.given)


@converts("SequenceInsert")
def sequence_insert(site: Site) -> Value:
    """One element more, by default at the end."""
    return site.b(sequence.SequenceInsert, site.input(0), site.input(1), site.optional(2))


@converts("SequenceErase")
def sequence_erase(site: Site) -> Value:
    """One element fewer, by default the last."""
    return site.b(sequence.SequenceErase, site.input(0), site.optional(1))


@converts("SequenceLength")
def sequence_length(site: Site) -> Value:
    """The number of elements."""
    return site.b(sequence.SequenceLength, site.input(0))


@converts("ConcatFromSequence")
def concat_from_sequence(site: Site) -> Value:
    """All elements as one tensor."""
    new_axis = site.attribute("new_axis")
    if new_axis not in {0, 1}:
        site.bad_attribute(f"attribute 'new_axis' is {new_axis}; expected 0 or 1")
    return site.b(sequence.ConcatFromSequence, site.input(0), axis=site.attribute("axis"), new_axis=bool(new_axis))


@converts("SplitToSequence")
def split_to_sequence(site: Site) -> Value:
    """Parts of a tensor."""
    x = site.input(0)
    axis, keep = site.axis_of(x, site.attribute("axis")), bool(site.attribute("keepdims"))
    return site.b(sequence.SplitToSequence, x, site.optional(1), axis=axis, keep_dims=keep)


@converts("Optional")
def optional_value(site: Site) -> Value:
    """The input, or nothing of the type that the attribute names."""
    if site.has(0):
        return site.b(optional.OptionalOf, site.input(0))
    if site.attribute("type") is None:
        site.invalid("neither an input nor attribute 'type' is given; expected one of them")
    return site.b(optional.OptionalEmpty, type=site.attribute("type"))


@converts("OptionalHasElement")
def optional_has_element(site: Site) -> Value:
    """False for an empty optional and for an omitted input; true for a value that is no optional."""
    value = site.optional(0)
    if value is None or not isinstance(value.type, OptionalType):
        return site.scalar(value is not None, BOOL)
    return site.b(optional.OptionalHas, value)


@converts("OptionalGetElement")
def optional_get_element(site: Site) -> Value:
    """What an optional holds; a value that is no optional itself."""
    value = site.input(0)
    return site.b(optional.OptionalGet, value) if isinstance(value.type, OptionalType) else value
