"""Calls of functions, branches and loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.frontends.assembly import cast, number, reshape
from compiler.frontends.onnx.fold import Folder
from compiler.frontends.tensorflow.functions import function_graph, inline, passed_through
from compiler.frontends.tensorflow.lists import TensorList
from compiler.frontends.tensorflow.site import Item, Results, Site, converts
from compiler.ir import BOOL, I64, Builder, Graph, TensorType, Type, Value, tensor
from compiler.ops.compare import Eq
from compiler.ops.control import If, Loop, join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Array

_MOST_TRIPS: Final = 100_000
"""Trips up to which a loop's count is found out by running its condition alone."""
_MOST_WIDENINGS: Final = 8


@converts("PartitionedCall", "StatefulPartitionedCall", "TPUPartitionedCall")
def call(site: Site) -> Results:
    """The function in place of its call."""
    return inline(site, function_graph(site, site.attr("f").name), site.inputs)


def _truth(site: Site, value: Value) -> Value:
    """A condition: a number is true unless it is 0, a tensor of other ranks where it has elements."""
    if site.rank(value):
        return site.constant(bool(np.prod(site.sizes(value))), BOOL)
    return cast(site, value, BOOL)


@converts("If", "StatelessIf")
def branch(site: Site) -> Results:
    """The branch that is known to be taken, else both as regions."""
    graphs = [function_graph(site, site.attr(name).name) for name in ("then_branch", "else_branch")]
    return _chosen(site, _truth(site, site.value(0)), graphs, site.inputs[1:])


@converts("Case", "StatelessCase")
def case(site: Site) -> Results:
    """One of several branches; an index outside takes the last."""
    graphs = [function_graph(site, item.name) for item in site.attr("branches")]
    index = site.value(0)
    known = site.known(index)
    if known is not None:
        place = int(known)
        chosen = graphs[place] if 0 <= place < len(graphs) else graphs[-1]
        return inline(site, chosen, site.inputs[1:])
    return _cases(site, index, graphs, 0, site.inputs[1:])


def _cases(
    site: Site, index: Value, graphs: Sequence[Any], place: int, given: Sequence[Value | Item | None]
) -> Results:
    if place == len(graphs) - 1:
        return inline(site, graphs[place], given)
    condition = site.op(Eq, index, number(site, place, index.tensor.element))
    then, otherwise = (Graph(f"{site.operation.name}/{name}") for name in ("then", "else"))
    first = inline(site, graphs[place], given, Builder(then, location=site.b.location))
    builder = Builder(otherwise, location=site.b.location)
    inner = Site(site.operation, site.inputs, builder, site.folder, site.body)
    rest = _cases(inner, index, graphs, place + 1, given)
    assert isinstance(rest, (list, tuple))
    return _joined(site, condition, (then, first), (otherwise, list(rest)))


def _chosen(site: Site, condition: Value, graphs: Sequence[Any], given: Sequence[Value | Item | None]) -> Results:
    known = site.known(condition)
    if known is not None:
        return inline(site, graphs[0 if known.reshape(-1)[0] else 1], given)
    regions = []
    for name, graph in zip(("then", "else"), graphs, strict=True):
        region = Graph(f"{site.operation.name}/{name}")
        regions.append((region, inline(site, graph, given, Builder(region, location=site.b.location))))
    return _joined(site, condition, *regions)


def _joined(
    site: Site, condition: Value, *branches: tuple[Graph, Sequence[Value | Item | None]]
) -> list[Value | Item | None]:
    """The operation with both regions. Lists leave it as tensors."""
    for region, items in branches:
        builder = Builder(region, location=site.b.location)
        builder.output(*[_tensor(site, item, builder) for item in items])
    results = site.b.op(If, [condition], [region for region, _ in branches]).results
    kinds = branches[0][1]
    return [
        item.of(value) if isinstance(item, TensorList) else value for item, value in zip(kinds, results, strict=True)
    ]


def _tensor(site: Site, item: Value | Item | None, builder: Builder) -> Value:
    if isinstance(item, Value):
        return item
    if isinstance(item, TensorList):
        return item.stacked(Site(site.operation, site.inputs, builder, site.folder, site.body))
    return site.refuse(f"{'nothing' if item is None else item.what} comes out of a branch; expected tensors")


@dataclass(frozen=True, slots=True)
class _While:
    """A loop: its functions, its arguments, and which of them change."""

    site: Site
    condition: Any
    step: Any
    given: tuple[Value | Item | None, ...]
    changing: tuple[int, ...]

    def results(self, values: Sequence[Value]) -> list[Value | Item | None]:
        """What comes out: the given items, those that change with these values."""
        found = list(self.given)
        for place, value in zip(self.changing, values, strict=True):
            item = self.given[place]
            found[place] = item.of(value) if isinstance(item, TensorList) else value
        return found

    def carried(self) -> list[Value]:
        """The values that change, as they are before the loop. Lists must know the shape of their elements."""
        return [_tensor(self.site, self.given[place], self.site.b) for place in self.changing]

    def going(self, items: Sequence[Value | Item | None], builder: Builder) -> Value:
        """The condition for some items."""
        (value,) = inline(self.site, self.condition, items, builder)
        assert isinstance(value, Value)
        inner = Site(self.site.operation, self.site.inputs, builder, self.site.folder, self.site.body)
        return reshape(inner, _truth(inner, value), [])

    def after(self, items: Sequence[Value | Item | None], builder: Builder) -> list[Value]:
        """The changed values after one trip."""
        found = inline(self.site, self.step, items, builder)
        return [_tensor(self.site, found[place], builder) for place in self.changing]

    def look_for_shapes(self) -> None:
        """Run one trip aside, for lists to see what is put into them."""
        lists = [item for item in self.given if isinstance(item, TensorList)]
        if all(item.value is not None for item in lists):
            return
        graph = Graph("aside")
        items = list(self.given)
        for place in self.changing:
            item = items[place]
            if isinstance(item, Value):
                items[place] = graph.add_input(item.type)
        inline(self.site, self.step, items, Builder(graph, location=self.site.b.location))
        graph.clear()


@converts("While", "StatelessWhile")
def while_loop(site: Site) -> Results:
    """A loop with the values that change carried; the others are used from outside."""
    condition, step = (function_graph(site, site.attr(name).name) for name in ("cond", "body"))
    still = passed_through(step)
    changing = tuple(place for place in range(len(site.inputs)) if place not in still)
    loop = _While(site, condition, step, site.inputs, changing)
    loop.look_for_shapes()
    first = loop.going(site.inputs, site.b)
    known = site.known(first)
    if known is not None and not known.reshape(-1)[0]:
        return list(site.inputs)
    carried = loop.carried()
    types = [value.type for value in carried]
    for _ in range(_MOST_WIDENINGS):
        graph, going, after = _body(loop, types)
        wider = [join("while", a, b.type) for a, b in zip(types, after, strict=True)]
        if wider == types:
            break
        types = wider
        graph.clear()
    trips = None if known is None else _trips(site, graph, going, after, carried)
    builder = Builder(graph, location=site.b.location)
    builder.output(going if trips is None else graph.inputs[1], *after)
    count = None if trips is None else site.constant(trips, I64)
    return loop.results(site.b.op(Loop, [count, first if trips is None else None, *carried], [graph]).results)


def _body(loop: _While, types: Sequence[Type]) -> tuple[Graph, Value, list[Value]]:
    """The region for carried values of these types, the condition after it and the values after it."""
    graph = Graph(f"{loop.site.operation.name}/body")
    graph.add_input(tensor(I64), "iteration")
    graph.add_input(tensor(BOOL), "condition")
    for type_ in types:
        assert isinstance(type_, TensorType)
        graph.add_input(type_)
    builder = Builder(graph, location=loop.site.b.location)
    after = loop.after(loop.results(graph.inputs[2:]), builder)
    return graph, loop.going(loop.results(after), builder), after


def _trips(site: Site, graph: Graph, going: Value, after: Sequence[Value], carried: Sequence[Value]) -> int | None:
    """How often a loop runs whose condition depends on counters with known first values alone; else None."""
    names = graph.inputs[2:]
    needed = _counters(going, names, after)
    state: dict[Value, Array | None] = {names[place]: site.known(carried[place]) for place in needed}
    if any(data is None for data in state.values()):
        return None
    for trip in range(1, _MOST_TRIPS):
        folder = Folder()
        folder.assume(state)
        more = folder.known(going)
        if more is None:
            return None
        if not more.reshape(-1)[0]:
            return trip
        state = {names[place]: folder.known(after[place]) for place in needed}
        if any(data is None for data in state.values()):
            return None
    return None


def _counters(going: Value, inputs: Sequence[Value], after: Sequence[Value]) -> list[int]:
    """Positions of the carried values on which the condition depends, through any number of trips."""
    places = {value: position for position, value in enumerate(inputs)}
    found: list[int] = []
    stack, seen = [going], {going}
    while stack:
        value = stack.pop()
        place = places.get(value)
        more = [] if value.op is None else [operand for operand in value.op.operands if operand is not None]
        if place is not None:
            found.append(place)
            more = [after[place]]
        fresh = [item for item in more if item not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return found
