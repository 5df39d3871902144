"""The graph: values, operations in a linked order, and regions.

A graph owns its operations in an intrusive doubly linked list, so that inserting and erasing cost the same anywhere.
Every value knows its users. A graph's outputs are the operands of its terminator, so a use is a use, whatever it feeds.
A region of an operation is a graph whose operations may also use values of the graphs around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.errors import InvalidGraph
from compiler.ir.constant import Array, Constant
from compiler.ir.definition import Attributes, AttributeValue, Call, Definition
from compiler.ir.location import UNKNOWN_LOCATION, Location
from compiler.ir.types import TensorType, Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Value:
    """An SSA value: the result ``index`` of ``op``, or input ``index`` of ``graph`` when ``op`` is None.

    ``users`` maps each operation that uses it to the number of operand slots it fills there. ``name`` is a hint for
    printing; it has no meaning.
    """

    __slots__ = ("graph", "index", "name", "op", "type", "users")

    def __init__(self, type_: Type, op: Op | None, index: int, graph: Graph | None = None, name: str = "") -> None:
        self.type = type_
        self.op = op
        self.index = index
        self.graph = graph
        self.name = name
        self.users: dict[Op, int] = {}

    @property
    def tensor(self) -> TensorType:
        """The type, which must be a tensor. Raises InvalidGraph."""
        if not isinstance(self.type, TensorType):
            msg = f"value '{self.name}' has type {self.type}; expected a tensor"
            raise InvalidGraph(msg)
        return self.type

    @property
    def owner(self) -> Graph:
        """The graph in which the value is defined. Raises InvalidGraph for a value of a detached operation."""
        graph = self.graph if self.op is None else self.op.graph
        if graph is None:
            msg = f"value '{self.name}' belongs to no graph"
            raise InvalidGraph(msg)
        return graph

    def replace_with(self, other: Value) -> None:
        """Let every user of this value use ``other``. No check of types: that is the verifier's."""
        if other is self:
            return
        for user, count in self.users.items():
            user.operands = tuple([other if operand is self else operand for operand in user.operands])
            other.users[user] = other.users.get(user, 0) + count
        self.users.clear()

    def __repr__(self) -> str:
        return f"<Value {self.name or self.index}: {self.type}>"


class Op:
    """An operation of a graph. ``operands`` has None where an optional operand is omitted."""

    __slots__ = ("attributes", "definition", "graph", "location", "next", "operands", "previous", "regions", "results")

    def __init__(
        self,
        definition: Definition,
        operands: Sequence[Value | None],
        result_types: Sequence[Type],
        attributes: Attributes | None = None,
        regions: Sequence[Graph] = (),
        location: Location = UNKNOWN_LOCATION,
    ) -> None:
        self.definition = definition
        self.operands: tuple[Value | None, ...] = tuple(operands)
        self.attributes: dict[str, AttributeValue] = dict(attributes) if attributes else {}
        self.regions: tuple[Graph, ...] = tuple(regions)
        self.location = location
        self.graph: Graph | None = None
        self.previous: Op | None = None
        self.next: Op | None = None
        self.results: tuple[Value, ...] = tuple([Value(type_, self, i) for i, type_ in enumerate(result_types)])
        for operand in self.operands:
            if operand is not None:
                operand.users[self] = operand.users.get(self, 0) + 1
        for region in self.regions:
            region.parent = self

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.definition.name

    @property
    def result(self) -> Value:
        """The only result. Raises InvalidGraph when there is not exactly one."""
        if len(self.results) != 1:
            msg = f"'{self.name}' has {len(self.results)} results; expected one"
            raise InvalidGraph(msg)
        return self.results[0]

    def operand(self, index: int) -> Value:
        """Operand ``index``, which must be given. Raises InvalidGraph."""
        found = self.operands[index] if index < len(self.operands) else None
        if found is None:
            msg = f"operand {index} of '{self.name}' is omitted (at {self.location})"
            raise InvalidGraph(msg)
        return found

    def call(self) -> Call:
        """What the definition sees, with the values of constant operands."""
        return Call(
            [None if operand is None else operand.type for operand in self.operands],
            self.attributes,
            [None if operand is None else known_value(operand) for operand in self.operands],
            self.regions,
        )

    def set_operand(self, index: int, value: Value | None) -> None:
        """Exchange one operand and keep the use lists."""
        old = self.operands[index]
        if old is value:
            return
        self.operands = (*self.operands[:index], value, *self.operands[index + 1 :])
        if old is not None:
            _drop_use(old, self)
        if value is not None:
            value.users[self] = value.users.get(self, 0) + 1

    def set_operands(self, operands: Sequence[Value | None]) -> None:
        """Exchange all operands and keep the use lists."""
        self._drop_operands()
        self.operands = tuple(operands)
        for operand in self.operands:
            if operand is not None:
                operand.users[self] = operand.users.get(self, 0) + 1

    def _drop_operands(self) -> None:
        for operand in self.operands:
            if operand is not None:
                _drop_use(operand, self)

    def erase(self) -> None:
        """Take the operation and its regions out of the graph. Raises InvalidGraph while a result has users."""
        for result in self.results:
            if result.users:
                msg = f"'{self.name}' (at {self.location}) is still used by {[user.name for user in result.users]}"
                raise InvalidGraph(msg)
        self._drop_operands()
        self.operands = ()
        for region in self.regions:
            region.clear()
        if self.graph is not None:
            self.graph.unlink(self)

    def walk(self) -> Iterator[Op]:
        """This operation and all in its regions, outer first."""
        yield self
        for region in self.regions:
            yield from region.walk()

    def __repr__(self) -> str:
        return f"<Op {self.name} at {self.location}>"


def _drop_use(value: Value, user: Op) -> None:
    left = value.users[user] - 1
    if left:
        value.users[user] = left
    else:
        del value.users[user]


class Graph:
    """Inputs, operations in order, and a terminator whose operands are the outputs.

    ``parent`` is the operation that the graph is a region of, if any. ``symbols`` documents named dims.
    """

    __slots__ = ("first", "inputs", "last", "name", "output_names", "parent")

    def __init__(self, name: str = "main", input_types: Sequence[Type] = (), input_names: Sequence[str] = ()) -> None:
        self.name = name
        self.inputs: list[Value] = []
        self.output_names: tuple[str, ...] = ()
        self.first: Op | None = None
        self.last: Op | None = None
        self.parent: Op | None = None
        names = input_names or [""] * len(input_types)
        for type_, input_name in zip(input_types, names, strict=True):
            self.add_input(type_, input_name)

    def add_input(self, type_: Type, name: str = "") -> Value:
        """Append an input."""
        value = Value(type_, None, len(self.inputs), self, name)
        self.inputs.append(value)
        return value

    def erase_input(self, index: int) -> None:
        """Take away an input without users. Raises InvalidGraph."""
        if self.inputs[index].users:
            msg = f"input {index} ('{self.inputs[index].name}') of graph '{self.name}' is still used"
            raise InvalidGraph(msg)
        del self.inputs[index]
        for position, value in enumerate(self.inputs):
            value.index = position

    @property
    def ops(self) -> Iterator[Op]:
        """The operations in order, the terminator last; erasing the current one while iterating is safe."""
        op = self.first
        while op is not None:
            following = op.next
            yield op
            op = following

    @property
    def terminator(self) -> Op:
        """The last operation, which names the outputs. Raises InvalidGraph when there is none."""
        if self.last is None or not self.last.definition.terminator:
            msg = f"graph '{self.name}' has no terminator"
            raise InvalidGraph(msg)
        return self.last

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The values that the terminator returns."""
        return tuple(operand for operand in self.terminator.operands if operand is not None)

    def append(self, op: Op) -> Op:
        """Insert at the end."""
        return self.insert(op, None)

    def insert(self, op: Op, before: Op | None) -> Op:
        """Insert ``op`` before another operation of this graph, or at the end."""
        following = before
        preceding = self.last if following is None else following.previous
        op.graph, op.previous, op.next = self, preceding, following
        if preceding is None:
            self.first = op
        else:
            preceding.next = op
        if following is None:
            self.last = op
        else:
            following.previous = op
        return op

    def unlink(self, op: Op) -> None:
        """Take ``op`` out of the order; its operands stay. For moving an operation."""
        if op.previous is None:
            self.first = op.next
        else:
            op.previous.next = op.next
        if op.next is None:
            self.last = op.previous
        else:
            op.next.previous = op.previous
        op.graph = op.previous = op.next = None

    def clear(self) -> None:
        """Erase every operation, last first."""
        while self.last is not None:
            self.last.erase()

    def walk(self) -> Iterator[Op]:
        """All operations, those of regions after the operation that holds them."""
        op = self.first
        while op is not None:
            following = op.next
            yield op
            for region in op.regions:
                yield from region.walk()
            op = following

    def constants(self) -> Iterator[Constant]:
        """The constants in the attributes of all operations, those in lists too."""
        for op in self.walk():
            for value in op.attributes.values():
                yield from _constants_in(value)

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.inputs)} inputs>"


def _constants_in(value: AttributeValue) -> Iterator[Constant]:
    if isinstance(value, Constant):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _constants_in(item)


def known_value(value: Value) -> Array | None:
    """The array of a value that a constant operation defines, else None (also for abstract constants)."""
    if value.op is None or not value.op.definition.holds_constant:
        return None
    constant = value.op.attributes["value"]
    return constant.array if isinstance(constant, Constant) and not constant.is_abstract else None
