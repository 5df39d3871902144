"""What ONNX's specification asks of a node in words, where neither schema nor type inference checks it.

Texts that attributes choose from, and dimensions of several inputs that must be equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compiler.errors import InvalidAttribute, TypeMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.ir import Value

CHECKED_DOMAINS: Final = frozenset({"", "ai.onnx.ml"})
"""Domains whose operators the tables are about; no name is in both."""
_TRANSFORMS: Final = {"post_transform": frozenset({"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"})}
_KERNELS: Final = {"kernel_type": frozenset({"LINEAR", "POLY", "RBF", "SIGMOID"})}
_REDUCTIONS: Final = frozenset({"none", "sum", "mean"})
CHOICES: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "Cast": {"round_mode": frozenset({"nearest", "up", "down"})},
    "CastLike": {"round_mode": frozenset({"nearest", "up", "down"})},
    "CausalConvWithState": {"activation": frozenset({"none", "silu", "swish"})},
    "LinearClassifier": _TRANSFORMS,
    "LinearRegressor": _TRANSFORMS,
    "Normalizer": {"norm": frozenset({"MAX", "L1", "L2"})},
    "SVMClassifier": _TRANSFORMS | _KERNELS,
    "SVMRegressor": _TRANSFORMS | _KERNELS,
    "TreeEnsembleClassifier": _TRANSFORMS,
    "TreeEnsembleRegressor": _TRANSFORMS,
    "LinearAttention": {"update_rule": frozenset({"linear", "gated", "delta", "gated_delta"})},
    "NegativeLogLikelihoodLoss": {"reduction": _REDUCTIONS},
    "RoiAlign": {
        "mode": frozenset({"avg", "max"}),
        "coordinate_transformation_mode": frozenset({"half_pixel", "output_half_pixel"}),
    },
    "SoftmaxCrossEntropyLoss": {"reduction": _REDUCTIONS},
}
"""Operator -> attribute -> the texts that the operator's specification lists."""

SIZES: Final[Mapping[str, Sequence[str]]] = {
    "AffineGrid": ("N D E", "S"),
    "Conv": ("N C ...", "M K ...", "M"),
    "ConvTranspose": ("N C ...", "C K ...", "B"),
    "GridSample": ("N C ...", "N ..."),
    "GRU": ("T N I", "D G I", "D G H", "D 2G", "N", "D N H"),
    "LSTM": ("T N I", "D G I", "D G H", "D 2G", "N", "D N H", "D N H"),
    "RNN": ("T N I", "D H I", "D H H", "D 2H", "N", "D N H"),
    "OneHot": ("...", "...", "2"),
    "NegativeLogLikelihoodLoss": ("N C ...", "N ...", "C"),
    "SoftmaxCrossEntropyLoss": ("N C ...", "N ...", "C"),
    "RoiAlign": ("N C H W", "R 4", "R"),
}
"""Operator -> for each input its dims: equal names are equal sizes, 2G is twice G, ... is any rest."""

_BATCH_FIRST: Final[Mapping[str, Sequence[str]]] = {
    "GRU": ("N T I", "D G I", "D G H", "D 2G", "N", "N D H"),
    "LSTM": ("N T I", "D G I", "D G H", "D 2G", "N", "N D H", "N D H"),
    "RNN": ("N T I", "D H I", "D H H", "D 2H", "N", "N D H"),
}
"""The same where attribute ``layout`` is set."""


def check_choices(operator: str, attributes: Mapping[str, Any], what: str) -> None:
    """Check texts that choose. Raises InvalidAttribute."""
    for name, allowed in CHOICES.get(operator, {}).items():
        found = attributes.get(name)
        if found is not None and found not in allowed:
            shown = ", ".join(sorted(allowed))
            raise InvalidAttribute(f"attribute '{name}' of {what} is '{found}'; expected one of {shown}")


def check_sizes(operator: str, attributes: Mapping[str, Any], inputs: Sequence[Value | None], what: str) -> None:
    """Check ranks and sizes of tensors against each other, as far as they are known. Raises TypeMismatch."""
    sizes: dict[str, int] = {}
    table = _BATCH_FIRST if attributes.get("layout") else SIZES
    for index, (value, text) in enumerate(zip(inputs, table.get(operator, ()), strict=False)):
        dims = None if value is None else value.tensor.dims
        if dims is None:
            continue
        names = text.split()
        is_open = names[-1] == "..."
        names = names[:-1] if is_open else names
        shown = f"input {index} of {what} has {list(dims)}"
        if len(dims) < len(names) or (len(dims) > len(names) and not is_open):
            raise TypeMismatch(f"{shown}; expected [{text}]")
        for name, dim in zip(names, dims, strict=False):
            if isinstance(dim, int) and not _fits(name, dim, sizes):
                raise TypeMismatch(f"{shown}; expected [{text}] with {_known(sizes)}")


def _fits(name: str, dim: int, sizes: dict[str, int]) -> bool:
    """Whether a size is that of its name, which it gives the name where that has none yet."""
    if name.isdigit():
        return dim == int(name)
    factor = int(name[0]) if name[0].isdigit() else 1
    return sizes.setdefault(name[-1], dim // factor) * factor == dim


def _known(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())
