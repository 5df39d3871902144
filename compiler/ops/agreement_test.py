"""Two meanings of an operator, its evaluation and its loops run point by point, agree on every type's edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compiler.ir import F8E8M0FNU, Call, Kind, tensor, type_of
from compiler.ops import operators
from compiler.ops.convert import BitCast, Cast
from compiler.ops.elementwise import Elementwise
from compiler.ops.operator_check_test import assert_same
from compiler.ops.registry import ANY, BOOLEAN, COMPLEX, STRINGS, Operator
from compiler.ops.scalars import limits
from compiler.ops.work import SCALAR_FUNCTIONS, Apply
from compiler.ops.work_test import run_work

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -7.0, 300.0, 7e4, 1e-7, 3e9, -1e19, math.inf, -math.inf, math.nan]
INTEGERS = [0, 1, -1, 2, 3, 7, -7, 31, 32, 100]
POINTWISE = [name for name, operator in operators().items() if isinstance(operator, Elementwise)]
# Powers of two only: neither zero nor sign, so that most arithmetic on them has no meaning.
TYPES = sorted(ANY - STRINGS - COMPLEX - {F8E8M0FNU}, key=lambda element: element.name)


def edges(element):
    """Special and extreme values of a type."""
    if element.kind is Kind.BOOL:
        return np.array([False, True])
    if element.is_float:
        with np.errstate(all="ignore"):
            return np.array(FLOATS).astype(element.dtype)
    low, high = limits(element)
    kept = sorted({max(low, min(high, value)) for value in (low, low + 1, high - 1, high, *INTEGERS)})
    return np.array(kept, np.uint64 if element.kind is Kind.UNSIGNED else np.int64).astype(element.dtype)


def combinations(arrays):
    """All combinations of the arrays' elements, as vectors of one length."""
    grids = np.meshgrid(*[np.arange(array.size) for array in arrays], indexing="ij")
    return [array[grid.reshape(-1)] for array, grid in zip(arrays, grids, strict=True)]


@pytest.mark.parametrize("name", sorted(set(POINTWISE) - {"cast", "bitcast"}))
def test_evaluation_and_loops_agree_on_the_edges_of_every_type(name):
    operator = operators()[name]
    for element in TYPES:
        if element not in operator.operands[-1].type.allowed:
            continue
        arrays = [edges(next(iter(BOOLEAN)) if spec.type.allowed == BOOLEAN else element) for spec in operator.operands]
        operands = combinations([array[:7] if len(arrays) > 2 else array for array in arrays])
        agree(operator, operands, operator.complete({}))


def agree(operator, operands, attributes):
    call = Call([type_of(operand) for operand in operands], attributes, operands)
    operator.check(call)
    types = operator.infer(call)
    work = operator.work(call, types)
    results = operator.evaluate(call, operands, None)
    for found, wanted in zip(run_work(work, operands, types), results, strict=True):
        # float32's functions in numpy are good to 4 units; narrow types may round a tie differently, by one.
        assert_same(found, wanted, 4 if types[0].element.bits >= 32 else 1)


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_casts_agree_between_all_types(source, saturate):
    for to in TYPES:
        attributes = {"to": to, "saturate": saturate, "round_mode": "nearest"}
        agree(Cast.instance(), [edges(source)], attributes)


@pytest.mark.parametrize("source", [element for element in TYPES if element.bits >= 8], ids=str)
def test_bit_casts_agree_between_all_types(source):
    for to in TYPES:
        if to.bits == source.bits and to.kind is not Kind.BOOL:
            agree(BitCast.instance(), [edges(source)], {"to": to})


def test_bodies_use_known_functions_with_the_right_number_of_operands():
    for name in POINTWISE:
        operator = operators()[name]
        call = example(operator)
        check_body(operator.work(call, operator.infer(call))[0].body)


def example(operator: Operator):
    types = [
        tensor(min(spec.type.allowed - STRINGS, key=lambda element: element.name), (2,)) for spec in operator.operands
    ]
    attributes = {"to": types[0].element} if any(spec.name == "to" for spec in operator.attributes) else {}
    return Call(types, operator.complete(attributes))


def check_body(body):
    if isinstance(body, Apply):
        assert len(body.operands) == SCALAR_FUNCTIONS[body.function]
        for operand in body.operands:
            check_body(operand)
