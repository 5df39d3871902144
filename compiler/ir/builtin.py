"""The two definitions that the IR itself needs: the terminator and the constant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from compiler.errors import InvalidAttribute, TypeMismatch
from compiler.ir.constant import Constant
from compiler.ir.definition import Call, Definition, RunRegion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir.types import Type


class Return(Definition):
    """Ends a graph; its operands are the graph's outputs."""

    name: ClassVar[str] = "return"
    terminator: ClassVar[bool] = True

    def check(self, call: Call) -> None:
        """Every output must be given. Raises TypeMismatch."""
        for index, type_ in enumerate(call.types):
            if type_ is None:
                msg = f"return: output {index} is omitted; expected a value"
                raise TypeMismatch(msg)

    def infer(self, call: Call) -> tuple[Type, ...]:  # noqa: ARG002 - the interface
        """No results."""
        return ()

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """The outputs, as they are."""
        return tuple(operands)


class ConstantOp(Definition):
    """A constant; its data is the attribute ``value``."""

    name: ClassVar[str] = "constant"
    holds_constant: ClassVar[bool] = True

    def check(self, call: Call) -> None:
        """The value must be there, and nothing else. Raises InvalidAttribute or TypeMismatch."""
        if call.types:
            msg = f"constant: {len(call.types)} operands; expected none"
            raise TypeMismatch(msg)
        if set(call.attributes) != {"value"} or not isinstance(call.attributes["value"], Constant):
            msg = f"constant: attributes {sorted(call.attributes)}; expected exactly 'value', a constant"
            raise InvalidAttribute(msg)

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The constant's own type."""
        return (call.constant("value").type,)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """The data. Raises AbstractConstant."""
        return (call.constant("value").array,)


RETURN: Final = Return.instance()
CONSTANT: Final = ConstantOp.instance()
