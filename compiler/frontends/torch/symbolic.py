"""Numbers that depend on input sizes: sizes of tensors, arithmetic on them, and the checks that torch leaves behind."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Final

from compiler.frontends.torch.converters.common import cast, operand, size_value
from compiler.ir import BOOL, F64, I64, TensorType, Value, tensor
from compiler.ops.compare import Eq, Ge, Gt, Le, Lt, Ne, Select
from compiler.ops.convert import Cast
from compiler.ops.elementwise import Abs, Add, Ceil, Div, Floor, Max, Min, Mod, Mul, Neg, Pow, Sqrt, Sub, Trunc
from compiler.ops.logic import And, Not, Or
from compiler.ops.shape import SizeOf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compiler.frontends.torch.site import Site
    from compiler.ir import Definition

_NUMBERS: Final = {"SymInt": I64, "SymFloat": F64, "SymBool": BOOL}

_CHECKS: Final = frozenset({
    "_assert_async.default", "_assert_async.msg", "_assert_scalar.default", "sym_constrain_range.default",
    "sym_constrain_range_for_size.default", "_assert_tensor_metadata.default",
    "_linalg_check_errors.default",
})  # fmt: skip
"""What torch checks while it runs: that sizes are as when it was exported. The types of graph inputs say so here."""

_SIZES: Final = frozenset({
    "sym_size.int", "sym_numel.default", "sym_stride.int", "sym_storage_offset.default", "item.default",
    "_local_scalar_dense.default", "sym_is_contiguous.default",
})  # fmt: skip


def type_of(fake: Any) -> TensorType:  # noqa: ANN401 - a SymInt, SymFloat or SymBool
    """The type of a symbolic number: rank 0."""
    return tensor(_NUMBERS[type(fake).__name__])


def type_of_number(number: float) -> TensorType:
    """The type of a Python number: rank 0."""
    from compiler.frontends.torch.site import element_of_number

    return tensor(element_of_number(number))


def _binary(definition: type[Definition]) -> Callable[[Site, Sequence[Any]], Value]:
    def convert(site: Site, arguments: Sequence[Any]) -> Value:
        element = _common(arguments)
        return site.op(definition, *[operand(site, item, element) for item in arguments])

    return convert


def _common(arguments: Sequence[Any]) -> Any:  # noqa: ANN401
    floats = any(
        isinstance(item, float) or (isinstance(item, Value) and item.tensor.element is F64) for item in arguments
    )
    return F64 if floats else I64


def _unary(definition: type[Definition]) -> Callable[[Site, Sequence[Any]], Value]:
    def convert(site: Site, arguments: Sequence[Any]) -> Value:
        return site.op(definition, operand(site, arguments[0], _common(arguments)))

    return convert


def _true_divide(site: Site, arguments: Sequence[Any]) -> Value:
    return site.op(Div, *[operand(site, item, F64) for item in arguments])


def _floor_divide(site: Site, arguments: Sequence[Any]) -> Value:
    element = _common(arguments)
    a, b = (operand(site, item, element) for item in arguments)
    if element is F64:
        return site.op(Floor, site.op(Div, a, b))
    return site.op(Div, site.op(Sub, a, site.op(Mod, a, b)), b)


def _rounded(definition: type[Definition]) -> Callable[[Site, Sequence[Any]], Value]:
    def convert(site: Site, arguments: Sequence[Any]) -> Value:
        return site.op(Cast, site.op(definition, operand(site, arguments[0], F64)), to=I64)

    return convert


def _logical(definition: type[Definition]) -> Callable[[Site, Sequence[Any]], Value]:
    def convert(site: Site, arguments: Sequence[Any]) -> Value:
        return site.op(definition, *[operand(site, item, BOOL) for item in arguments])

    return convert


def _if_else(site: Site, arguments: Sequence[Any]) -> Value:
    element = _common(arguments[1:])
    return site.op(Select, operand(site, arguments[0], BOOL), *[operand(site, item, element) for item in arguments[1:]])


_TABLE: Final[dict[str, Callable[[Site, Sequence[Any]], Value]]] = {
    "add": _binary(Add),
    "sub": _binary(Sub),
    "mul": _binary(Mul),
    "mod": _binary(Mod),
    "pow": _binary(Pow),
    "pow_by_natural": _binary(Pow),
    "truediv": _true_divide,
    "int_truediv": _true_divide,
    "floordiv": _floor_divide,
    "neg": _unary(Neg),
    "abs": _unary(Abs),
    "eq": _binary(Eq),
    "ne": _binary(Ne),
    "lt": _binary(Lt),
    "le": _binary(Le),
    "gt": _binary(Gt),
    "ge": _binary(Ge),
    "and_": _logical(And),
    "or_": _logical(Or),
    "not_": _logical(Not),
    "sym_not": _logical(Not),
    "sym_max": _binary(Max),
    "sym_min": _binary(Min),
    "sym_float": lambda site, arguments: operand(site, arguments[0], F64),
    "sym_int": _rounded(Trunc),
    "sym_ite": _if_else,
    "_sym_sqrt": lambda site, arguments: site.op(Sqrt, operand(site, arguments[0], F64)),
    "sym_sqrt": lambda site, arguments: site.op(Sqrt, operand(site, arguments[0], F64)),
    "floor": _rounded(Floor),
    "ceil": _rounded(Ceil),
    "trunc": _rounded(Trunc),
}
"""Functions of Python's ``operator`` and ``math`` and of torch, by name."""


def is_symbolic(target: Any) -> bool:  # noqa: ANN401 - a function
    """Whether a call is arithmetic on numbers."""
    name = getattr(target, "__name__", "")
    module = getattr(target, "__module__", "")
    return name in _TABLE and module in (
        operator.__name__,
        "_operator",
        math.__name__,
        "torch",
        "torch.fx.experimental.sym_node",
    )


def convert(site: Site, target: Any, arguments: Sequence[Any]) -> Any:  # noqa: ANN401
    """Arithmetic on numbers, a constant where all of them are known."""
    result = site.result
    if isinstance(result, (bool, int, float)):
        return result
    if not any(isinstance(item, Value) for item in arguments):
        return target(*arguments)
    return site.folded(_TABLE[target.__name__](site, arguments))


def is_symbolic_operator(name: str) -> bool:
    """Whether an ATen operator gives a number, or only checks one."""
    return name in _CHECKS or name in _SIZES


def convert_operator(site: Site, name: str) -> Any:  # noqa: ANN401
    """A size of a tensor, its only element, or nothing for a check."""
    if name in _CHECKS:
        return None
    if isinstance(site.result, (bool, int, float)):
        return site.result
    x = site.value("self")
    if name == "sym_size.int":
        return size_value(site, x, site.axis(site["dim"], x.tensor.rank))
    if name == "sym_numel.default":
        return site.folded(site.op(SizeOf, x))
    if name in ("item.default", "_local_scalar_dense.default"):
        from compiler.frontends.torch.converters.common import reshape

        return cast(site, reshape(site, x, []), _NUMBERS[type(site.result).__name__])
    return site.refuse("how a tensor lies in memory has no meaning here")
