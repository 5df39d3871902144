"""Functions of a TensorFlow graph, inlined where they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.errors import InvalidModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.frontends.tensorflow.site import Item, Site
    from compiler.ir import Builder, Value


def function_graph(site: Site, name: str) -> Any:  # noqa: ANN401 - a FuncGraph
    """The graph of a function that a node calls. Raises InvalidModel where it is missing."""
    known = site.body.program.functions
    if name not in known:
        found = site.operation.graph._get_function(name)  # noqa: SLF001 - there is no public way to a graph's functions
        definition = site.body.program.library.get(name)
        if hasattr(found, "graph"):
            known[name] = found.graph
        elif definition is not None:
            known[name] = _from_definition(site.body.program.graph, definition)
        else:
            raise InvalidModel(f"node '{site.operation.name}' calls function '{name}', which the model does not have")
    return known[name]


def _from_definition(outer: Any, definition: Any) -> Any:  # noqa: ANN401
    """The graph of a function that came with a graph, and that nobody traced here."""
    from tensorflow.python.framework.function_def_to_graph import function_def_to_graph

    with outer.as_default():
        return function_def_to_graph(definition)


def inline(
    site: Site,
    graph: Any,  # noqa: ANN401 - a FuncGraph
    given: Sequence[Value | Item | None],
    builder: Builder | None = None,
) -> list[Value | Item | None]:
    """The results of a function for given arguments, built with ``builder`` (default: where the call stands)."""
    from compiler.frontends.tensorflow.importer import Body

    builder = builder or site.b
    outer = site.body.scope or site.body.program.source
    inner = Body(
        builder, site.folder, site.body.program, f"{outer}/{site.operation.name}" if outer else site.operation.name
    )
    for placeholder, item in zip(graph.inputs, given, strict=True):
        inner.env[placeholder.name] = item
    before = builder.location
    inner.run(graph, graph.outputs)
    builder.location = before
    return [inner.env[value.name] for value in graph.outputs]


def passed_through(graph: Any) -> set[int]:  # noqa: ANN401
    """Positions at which a function gives back its own argument of that position."""
    places = {value.name: position for position, value in enumerate(graph.inputs)}
    found = set()
    for position, value in enumerate(graph.outputs):
        source = value
        while source.op.type == "Identity":
            source = source.op.inputs[0]
        if places.get(source.name) == position:
            found.add(position)
    return found
