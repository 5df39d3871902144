"""Operators that take parts of the program: cond, while_loop, map, scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compiler.errors import UnsupportedOperator
from compiler.frontends.torch.converters.common import reshape, size_value
from compiler.frontends.torch.memory import Place
from compiler.ir import BOOL, I64, Builder, Graph, Value, tensor
from compiler.ops.control import If, Loop
from compiler.ops.indexing import Gather
from compiler.ops.movement import Reverse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.frontends.torch.importer import Body


def convert(body: Body, module: Any, node: Any) -> Any:  # noqa: ANN401 - a GraphModule and one of its nodes
    """The results of such an operator. Raises UnsupportedOperator for others."""
    name = node.target.name() if callable(getattr(node.target, "name", None)) else str(node.target)
    found = _TABLE.get(name)
    if found is None:
        raise UnsupportedOperator("higher_order", name, None, "it has no conversion", node=node.name)
    del module
    results = found(body, node)
    return [Place.of(value) if isinstance(value, Value) else value for value in results]


def _inline(body: Body, module: Any, given: Sequence[Any], builder: Builder) -> list[Value]:  # noqa: ANN401
    """The outputs of a part of the program for given values, built with ``builder``."""
    from compiler.frontends.torch.importer import Body as Inner

    inner = Inner(builder, body.folder, body.source)
    placeholders = [item for item in module.graph.nodes if item.op == "placeholder"]
    for item, value in zip(placeholders, given, strict=True):
        is_tensor = isinstance(value, Value) and hasattr(item.meta.get("val"), "shape")
        inner.env[item] = Place.of(value) if is_tensor else value
    inner.run(module, module.graph.nodes)
    output = next(item for item in module.graph.nodes if item.op == "output").args[0]
    return [inner.value(item) for item in (output if isinstance(output, (list, tuple)) else [output])]


def _scalar(body: Body, value: Any) -> Value:  # noqa: ANN401
    """A condition as a bool of rank 0."""
    site = body.site("higher_order.condition")
    if not isinstance(value, Value):
        return site.constant(bool(value), BOOL)
    return reshape(site, value, [])


def _cond(body: Body, node: Any) -> Sequence[Any]:  # noqa: ANN401
    condition, then, otherwise = (body.argument(item) for item in node.args[:3])
    given = body.argument(node.args[3])
    regions = []
    for name, module in (("then", then), ("else", otherwise)):
        graph = Graph(f"{node.name}/{name}")
        builder = Builder(graph, location=body.b.location)
        builder.output(*_inline(body, module, given, builder))
        regions.append(graph)
    return body.b.op(If, [_scalar(body, condition)], regions).results


def _while_loop(body: Body, node: Any) -> Sequence[Any]:  # noqa: ANN401
    condition, step = (body.argument(item) for item in node.args[:2])
    carried = [body.value(item) for item in node.args[2]]
    more = body.argument(node.args[3]) if len(node.args) > 3 else []
    first = _scalar(body, _inline(body, condition, [*carried, *more], body.b)[0])
    graph, builder = _region(body, f"{node.name}/body", carried)
    after = _inline(body, step, [*graph.inputs[2:], *more], builder)
    going = _inline(body, condition, [*after, *more], builder)[0]
    builder.output(_reshaped(builder, going), *after)
    return body.b.op(Loop, [None, first, *carried], [graph]).results


def _reshaped(builder: Builder, value: Value) -> Value:
    import numpy as np

    from compiler.ops.reshape import Reshape

    return value if value.tensor.dims == () else builder(Reshape, value, builder.constant(np.zeros(0, np.int64)))


def _region(body: Body, name: str, carried: Sequence[Value]) -> tuple[Graph, Builder]:
    graph = Graph(name)
    graph.add_input(tensor(I64), "iteration")
    graph.add_input(tensor(BOOL), "condition")
    for value in carried:
        graph.add_input(value.type)
    return graph, Builder(graph, location=body.b.location)


def _map(body: Body, node: Any) -> Sequence[Any]:  # noqa: ANN401
    function, scanned, more = (body.argument(item) for item in node.args[:3])
    return _scanned(
        body, node, [], scanned, lambda _, parts, builder: _inline(body, function, [*parts, *more], builder)
    )


def _scan(body: Body, node: Any) -> Sequence[Any]:  # noqa: ANN401
    names = ("combine_fn", "init", "xs", "additional_inputs")
    found = {name: body.argument(item) for name, item in zip(names, node.args, strict=False)}
    found |= {name: body.argument(item) for name, item in node.kwargs.items()}
    more = found.get("additional_inputs") or []
    states = list(found["init"])

    def step(carried: Sequence[Value], parts: Sequence[Value], builder: Builder) -> list[Value]:
        return _inline(body, found["combine_fn"], [*carried, *parts, *more], builder)

    results = _scanned(body, node, states, found["xs"], step)
    if found.get("reverse"):
        results = [*results[: len(states)], *(body.b(Reverse, value, axes=(0,)) for value in results[len(states) :])]
    return results


def _scanned(
    body: Body,
    node: Any,  # noqa: ANN401
    states: Sequence[Value],
    scanned: Sequence[Value],
    step: Callable[[Sequence[Value], Sequence[Value], Builder], list[Value]],
) -> Sequence[Value]:
    """A loop over the slices of tensors along their first dim."""
    site = body.site("higher_order.scan")
    trips = size_value(site, scanned[0], 0)
    graph, builder = _region(body, f"{node.name}/body", states)
    parts = [builder(Gather, value, graph.inputs[0], axis=0) for value in scanned]
    builder.output(graph.inputs[1], *step(graph.inputs[2:], parts, builder))
    return body.b.op(Loop, [trips, None, *states], [graph]).results


def _wrapped(body: Body, node: Any) -> Sequence[Any]:  # noqa: ANN401
    """A part of the program that only says under which settings it runs."""
    modules = [item for item in node.args if hasattr(item, "op") and item.op == "get_attr"]
    at = node.args.index(modules[0])
    return _inline(body, body.argument(modules[0]), [body.argument(item) for item in node.args[at + 1 :]], body.b)


_TABLE: Final[dict[str, Callable[[Body, Any], Sequence[Any]]]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "map_impl": _map,
    "scan": _scan,
    "wrap_with_set_grad_enabled": _wrapped,
    "wrap_with_autocast": _wrapped,
}
