"""Branches and loops: If, Loop, and Scan as a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.errors import TypeMismatch
from compiler.frontends.onnx.converters.common import concat, shape_of, squeeze, unsqueeze
from compiler.frontends.onnx.site import Results, Site, converts
from compiler.ir import BOOL, I64, Builder, Graph, OptionalType, TensorType, Type, Value, tensor
from compiler.ops.control import If, Loop, join
from compiler.ops.elementwise import Sub
from compiler.ops.indexing import Gather
from compiler.ops.movement import Reverse, Transpose
from compiler.ops.optional import OptionalGet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onnx import GraphProto

_ROUNDS = 8
"""Types of carried values only ever lose precision, dim by dim and rank by rank: few rounds settle them."""
_BATCH_LIMIT = 64


@converts("If")
def branch(site: Site) -> Results:
    """Both branches as regions; only the one taken, in place, where constants decide."""
    condition = site.input(0).tensor.dims
    if condition is not None and any(isinstance(size, int) and size != 1 for size in condition):
        site.bad_shape(f"its condition is {site.input(0).type}; expected one element")
    decided = site.needed(0) if _asks(site) else site.known(site.input(0))
    if decided is not None and decided.size == 1:
        name = "then_branch" if decided.reshape(()) else "else_branch"
        return site.inline(site.attributes[name], (), site.b, name)
    regions = [site.region("then_branch", ()), site.region("else_branch", ())]
    counts = [len(region.outputs) for region in regions]
    if counts[0] != counts[1]:
        site.invalid(f"its branches have {counts[0]} and {counts[1]} outputs; expected equal numbers")
    return site.b.op(If, [site.input(0)], regions)


def _asks(site: Site) -> bool:
    """Whether the condition hangs on a scalar that is given: a model's mode, say. The branch not taken need not fit."""
    source = site.folder.undecided_input(site.input(0))
    if not site.folder.concrete or source is None or not isinstance(source.type, TensorType):
        return False
    return source.type.is_static and source.type.size == 1 and not source.type.element.is_float


@converts("Loop")
def loop(site: Site) -> Results:
    """The body as a region; carried values whose sizes change from trip to trip have unknown dims."""
    carried = [site.input(index) for index in range(2, len(site.inputs))]
    body = site.attributes["body"]

    def build(types: Sequence[Type]) -> Graph:
        return site.region("body", [tensor(I64), tensor(BOOL), *types])

    if len(body.output) < 1 + len(carried):
        site.invalid(f"its body has {len(body.output)} outputs; expected at least {1 + len(carried)}")
    region = _settled(site, carried, build)
    if region.outputs[0].tensor.element is not BOOL:
        given = region.outputs[0].type
        raise TypeMismatch(f"node '{site.node}' (Loop): its body gives {given} as condition; expected a bool")
    op = site.b.op(Loop, [site.optional(0), site.optional(1), *carried], [region])
    after = region.outputs[1 : 1 + len(carried)]
    finals = [_held(site, final, made.type) for final, made in zip(op.results, after, strict=False)]
    return [*finals, *op.results[len(carried) :]]


def _held(site: Site, final: Value, made: Type) -> Value:
    """A carried value after the loop: what an optional holds, where the body makes no optional but starts from one."""
    is_full = isinstance(final.type, OptionalType) and not isinstance(made, OptionalType)
    return site.b(OptionalGet, final) if is_full else final


def _settled(site: Site, carried: Sequence[Value], build: Callable[[Sequence[Type]], Graph]) -> Graph:
    """The body for types of the carried values that hold before and after each trip."""
    types: list[Type] = [value.type for value in carried]
    for _ in range(_ROUNDS):
        region = build(types)
        after = [value.type for value in region.outputs[1 : 1 + len(carried)]]
        joined = [join(site.operator, a, b) for a, b in zip(types, after, strict=True)]
        if joined == types:
            return region
        region.clear()
        types = joined
    return site.refuse("the types of its carried values do not settle")


@dataclass(frozen=True, slots=True)
class _Scanned:
    """A scan's inputs: values, the axis each is cut along, and whether from the end."""

    values: tuple[Value, ...]
    axes: tuple[int, ...]
    reverse: tuple[bool, ...]


@converts("Scan", since=9)
def scan(site: Site) -> Results:
    """A loop that cuts its inputs along an axis each and stacks its outputs along an axis each."""
    count = _scan_inputs(site, len(site.inputs))
    states, inputs = site.given[: len(site.inputs) - count], site.given[len(site.inputs) - count :]
    axes = _entries(site, "scan_input_axes", count)
    axes = tuple(site.axis(axis, site.rank(value)) for axis, value in zip(axes, inputs, strict=True))
    scanned = _Scanned(inputs, axes, _flags(site, "scan_input_directions", count))
    body: GraphProto = site.attributes["body"]
    results = _scan(site, states, scanned)
    outputs = len(body.output) - len(states)
    finished: list[Value] = list(results[: len(states)])
    for value, axis, back in zip(
        results[len(states) :],
        _entries(site, "scan_output_axes", outputs),
        _flags(site, "scan_output_directions", outputs),
        strict=True,
    ):
        finished.append(_placed(site, value, axis, back=back))
    return finished


def _scan_inputs(site: Site, given: int) -> int:
    """The number of inputs that are cut. Raises InvalidModel where there are not that many."""
    count = int(site.attribute("num_scan_inputs"))
    if not 1 <= count <= given:
        site.invalid(f"it has {given} inputs, and attribute 'num_scan_inputs' is {count}")
    return count


def _entries(site: Site, name: str, count: int) -> tuple[int, ...]:
    found = site.attribute(name)
    if found is None:
        return (0,) * count
    if len(found) != count:
        site.bad_attribute(f"attribute '{name}' has {len(found)} entries; expected {count}")
    return tuple(found)


def _flags(site: Site, name: str, count: int) -> tuple[bool, ...]:
    found = _entries(site, name, count)
    if not set(found) <= {0, 1}:
        site.bad_attribute(f"attribute '{name}' is {list(found)}; expected 0 and 1 alone")
    return tuple(bool(entry) for entry in found)


def _scan(site: Site, states: Sequence[Value], scanned: _Scanned) -> tuple[Value, ...]:
    first, axis = scanned.values[0], scanned.axes[0]
    trips = squeeze(site, shape_of(site, first, axis, axis + 1), (0,))
    trips = site.folded(trips)
    last = site.folded(site.b(Sub, trips, site.scalar(1, I64))) if any(scanned.reverse) else trips

    def build(types: Sequence[Type]) -> Graph:
        graph = Graph(f"{site.node}/body")
        number = graph.add_input(tensor(I64), "iteration")
        condition = graph.add_input(tensor(BOOL), "condition")
        carried = [graph.add_input(type_) for type_ in types]
        builder = Builder(graph, location=site.b.location)
        cut = []
        for value, along, back in zip(scanned.values, scanned.axes, scanned.reverse, strict=True):
            index = builder(Sub, last, number) if back else number
            cut.append(builder(Gather, value, index, axis=along))
        outputs = site.inline(site.attributes["body"], [*carried, *cut], builder, "body")
        builder.output(condition, *outputs)
        return graph

    if len(site.attributes["body"].output) < len(states):
        site.invalid(f"its body has {len(site.attributes['body'].output)} outputs for {len(states)} states")
    region = _settled(site, states, build)
    return site.b.op(Loop, [trips, None, *states], [region]).results


def _placed(site: Site, value: Value, axis: int, *, back: bool) -> Value:
    """A stacked output in its order and with the stacked dim at its place."""
    rank = site.rank(value)
    axis = site.axis(axis, rank)
    if back:
        value = site.b(Reverse, value, axes=(0,))
    if axis:
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
        value = site.b(Transpose, value, permutation=tuple(order))
    return value


@converts("Scan", until=8)
def batched_scan(site: Site) -> Results:
    """The first version scans each element of a batch (dim 0 of every input) by itself, along dim 1."""
    if site.has(0):
        site.refuse("lengths that differ within a batch")
    values = [site.input(index) for index in range(1, len(site.inputs))]
    count = _scan_inputs(site, len(values))
    if any(site.rank(value) == 0 for value in values):
        site.bad_shape("an input is a scalar; expected a batch")
    batch = values[0].tensor.known_dims[0]
    if not isinstance(batch, int):
        site.undecided("the size of the batch is unknown")
    if not 0 < batch <= _BATCH_LIMIT:
        site.refuse(f"a batch of size {batch}")
    directions = _flags(site, "directions", count)
    rows: list[tuple[Value, ...]] = []
    for element in range(batch):
        cut = [site.b(Gather, value, site.scalar(element, I64), axis=0) for value in values]
        states, inputs = cut[: len(cut) - count], cut[len(cut) - count :]
        rows.append(_scan(site, states, _Scanned(tuple(inputs), (0,) * count, directions)))
    return [concat(site, [unsqueeze(site, row[index], (0,)) for row in rows]) for index in range(len(rows[0]))]
