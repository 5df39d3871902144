"""The element type in which torch computes: its own promotion of tensors, numbers and symbolic numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.frontends.torch.types import element_from
from compiler.ir import BOOL, F32, F64, I64, Value

if TYPE_CHECKING:
    from compiler.frontends.torch.site import Site
    from compiler.ir import ElementType


def promoted(site: Site, *names: str) -> ElementType:
    """The common type of some arguments, each a tensor or a number, by ``torch.result_type``."""
    import torch

    found: list[Any] = [site.fakes[name] for name in names]
    tensors = [item for item in found if isinstance(item, torch.Tensor)]
    numbers = [_plain(item) for item in found if not isinstance(item, torch.Tensor)]
    if not tensors:
        kinds = {bool: BOOL, int: I64}
        return max((kinds.get(type(item), F32) for item in numbers), key=(BOOL, I64, F32, F64).index)
    current = tensors[0]
    pair = tensors[1] if len(tensors) > 1 else (numbers.pop(0) if numbers else None)
    if pair is None:
        return element_from(current.dtype)
    dtype = torch.result_type(current, pair)
    for item in (*tensors[2:], *numbers):
        dtype = torch.promote_types(dtype, torch.result_type(current.to(dtype), item))
    return element_from(dtype)


def _plain(item: Any) -> Any:  # noqa: ANN401 - a Python number, or a symbolic one
    """A symbolic number as an example of its kind."""
    kinds: dict[str, Any] = {"SymInt": 1, "SymFloat": 1.0, "SymBool": True}
    return kinds.get(type(item).__name__, item)


def float_of(element: ElementType) -> ElementType:
    """The type in which torch computes a function of real numbers: float32 for integers and bools."""
    return element if element.is_float or element.kind.value == "complex" else F32


def is_tensor(found: object) -> bool:
    """Whether an argument is a tensor or a symbolic number."""
    return isinstance(found, Value)
