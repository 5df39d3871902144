"""Ways to run one operator in tests: by its evaluation, by its decomposition, and by its loops."""

from __future__ import annotations

import numpy as np

from compiler.ir import Builder, Graph, Op, Value, type_of
from compiler.ir.verifier import verify
from compiler.ops.interpreter import interpret
from compiler.ops.operator_check_test import check_inference
from compiler.ops.registry import Composite, lookup
from compiler.ops.scalars import apply_scalar
from compiler.ops.work import Apply, Arg, Combiner, Index, Literal, Position

UFUNCS = {Combiner.ADD: np.add, Combiner.MUL: np.multiply, Combiner.MAX: np.maximum, Combiner.MIN: np.minimum}


def build(name, arrays, attributes) -> tuple[Graph, Op, list]:
    """A graph of one operation; value operands are constants, the others inputs."""
    definition = lookup(name)
    graph = Graph()
    builder = Builder(graph)
    operands: list[Value | None] = []
    inputs = []
    for index, array in enumerate(arrays):
        if array is None:
            operands.append(None)
        elif definition.signature_operand(index).value:
            operands.append(builder.constant(array))
        else:
            operands.append(graph.add_input(type_of(array)))
            inputs.append(array)
    op = builder.op(definition, operands, **attributes)
    builder.output(*op.results)
    return graph, op, inputs


def run(name, *arrays, **attributes):
    """The results by ``evaluate``; one result comes alone. Inference must hold for symbols and unknown values too."""
    graph, op, inputs = build(name, arrays, attributes)
    results = interpret(graph, inputs)
    check_inference(op.definition, op.call(), [type_of(result) for result in results])
    return results[0] if len(results) == 1 else results


def run_decomposed(name, *arrays, **attributes):
    """The results by the decomposition, decomposed until no composite is left."""
    graph, _, inputs = build(name, arrays, attributes)
    decompose_all(graph)
    results = interpret(graph, inputs)
    return results[0] if len(results) == 1 else results


def decompose_all(graph: Graph) -> None:
    """Replace composites by their decompositions until none is left, and check the types of the replacements."""
    again = True
    while again:
        again = False
        for op in list(graph.ops):
            if isinstance(op.definition, Composite):
                values = op.definition.decompose(op, Builder(graph, op))
                assert len(values) == len(op.results)
                for old, new in zip(op.results, values, strict=True):
                    assert old.type is new.type or old.tensor.element is new.tensor.element
                    if old.tensor.is_static:
                        assert old.type is new.type, (old.type, new.type)
                    old.replace_with(new)
                op.erase()
                again = True
    verify(graph)


def run_loops(name, *arrays, **attributes):
    """The first result by the loops of ``work``, every point of the iteration space at once."""
    _, op, _ = build(name, arrays, attributes)
    type_ = op.results[0].tensor
    work = op.definition.work(op.call(), [value.type for value in op.results])
    result = np.zeros(type_.shape, type_.element.dtype)
    for nest in work:
        grid = np.meshgrid(*[np.arange(extent) for extent in nest.extents], indexing="ij", sparse=False)
        reads = [read(access, arrays, grid) for access in nest.reads]
        body = value_of(nest.body, reads, grid)
        where = tuple(np.broadcast_to(index, nest.extents).ravel() for index in indices(nest.write, grid))
        where = where or (np.zeros(nest.points, np.int64),)
        scalar = not type_.shape
        result = result.reshape(-1) if scalar else result
        if nest.combiner is None:
            result[where] = np.broadcast_to(body, nest.extents).ravel()
            continue
        dtype = nest.accumulate.dtype
        total = result.astype(dtype) if nest.initial is None else np.full(result.shape, nest.initial, dtype)
        assert body.dtype == dtype
        UFUNCS[nest.combiner].at(total, where, np.broadcast_to(body, nest.extents).ravel())
        result = (total.reshape(()) if scalar else total).astype(result.dtype)
    return result


def indices(access, grid):
    for dim in access.dims:
        assert isinstance(dim, Index)
        yield np.asarray(dim.offset + sum(coefficient * grid[iterator] for iterator, coefficient in dim.terms))


def read(access, arrays, grid):
    array = arrays[access.operand]
    found = list(indices(access, grid))
    inside = np.asarray(True)
    for index, size in zip(found, array.shape, strict=True):
        inside = inside & (index >= 0) & (index < size)
    if access.fill is None:
        assert np.all(inside)
    clipped = tuple(np.clip(index, 0, max(size - 1, 0)) for index, size in zip(found, array.shape, strict=True))
    values = array[clipped]
    return values if access.fill is None else np.where(inside, values, np.asarray(access.fill).astype(array.dtype))


def value_of(body, reads, grid):
    if isinstance(body, Arg):
        assert reads[body.index].dtype == body.element.dtype
        return reads[body.index]
    if isinstance(body, Literal):
        return np.asarray(body.value).astype(body.element.dtype)
    if isinstance(body, Position):
        return (grid[body.iterator] * body.scale + body.offset).astype(body.element.dtype)
    assert isinstance(body, Apply)
    operands = [value_of(operand, reads, grid) for operand in body.operands]
    if body.function == "cast":
        return operands[0].astype(body.element.dtype)
    return apply_scalar(body.function, *operands)
