"""PyTorch's own samples of its operators (``op_db``): which there are, and one of them as a module with its inputs.

torch is imported when a sample is made, not when samples are counted: their numbers are in opsets/torch_opinfo.yaml,
written by ``python -m conformance.suites.opinfo_samples`` with the torch that it names.
"""

from __future__ import annotations

import hashlib
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from conformance.errors import Unavailable

COUNTS: Final = Path(__file__).resolve().parents[2] / "opsets" / "torch_opinfo.yaml"
TYPES: Final = ("float32", "float16", "bfloat16", "int64", "bool")
ERRORS: Final = "error"
"""Stands where a type would: samples that PyTorch itself refuses."""

DEFAULT_SAMPLES: Final = 12
"""Samples of an entry and type that a run without --full tries, spread evenly over all of them."""


@dataclass(frozen=True, slots=True)
class SampleId:
    """One sample: entry of op_db (its name with the variant), element type or ``error``, place in the entry's list."""

    entry: str
    dtype: str
    index: int

    @property
    def id(self) -> str:
        """The case's id."""
        return f"torch-opinfo-{self.entry}-{self.dtype}-{self.index}"


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample ready to run: ``module(*tensors)`` calls the operator with all else as the sample has it.

    ``module.widened()`` is the same with types among the arguments in float64. ``elementwise`` says that the operator
    works element by element.
    """

    module: Any
    tensors: tuple[Any, ...]
    elementwise: bool


@cache
def counted() -> Mapping[str, Mapping[str, int]]:
    """Entry -> element type or ``error`` -> number of samples, by the torch that the file names."""
    found: dict[str, dict[str, int]] = yaml.safe_load(COUNTS.read_text(encoding="utf-8"))["samples"]
    return found


def samples() -> Iterator[tuple[SampleId, bool]]:
    """Every sample, and whether a run without --full leaves it out."""
    for entry, counts in counted().items():
        for dtype, count in counts.items():
            chosen = spread(count, DEFAULT_SAMPLES)
            for index in range(count):
                yield SampleId(entry, dtype, index), index not in chosen


def spread(count: int, wanted: int) -> frozenset[int]:
    """At most ``wanted`` of ``count`` indices, evenly spread, the first and the last among them."""
    if count <= wanted:
        return frozenset(range(count))
    return frozenset(round(step * (count - 1) / (wanted - 1)) for step in range(wanted))


def make(sample: SampleId) -> Sample:
    """The sample. Raises Unavailable where this torch has none of that number, or cannot make it."""
    found = _drawn(sample.entry, sample.dtype)
    if sample.index >= len(found):
        import torch

        raise Unavailable(f"torch {torch.__version__} has {len(found)} samples of {sample.entry} in {sample.dtype}")
    given = found[sample.index]
    given = getattr(given, "sample_input", given)
    return _sample(_entries()[sample.entry], given)


@cache
def _entries() -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        raise Unavailable(f"torch's own samples cannot be had ({error}); pip install 'opatlas[torch]'") from error
    return {entry.full_name: entry for entry in op_db}


_LAST: dict[tuple[str, str], list[Any]] = {}
"""The list that was drawn last: the cases of an entry and type run one after the other."""


def _drawn(entry: str, dtype: str) -> list[Any]:
    if (entry, dtype) not in _LAST:
        if entry not in _entries():
            raise Unavailable(f"this torch has no entry {entry}")
        made = list(_draw(_entries()[entry], dtype))
        _LAST.clear()
        _LAST[entry, dtype] = made
    return _LAST[entry, dtype]


def _draw(entry: Any, dtype: str) -> Iterator[Any]:  # noqa: ANN401 - an OpInfo
    """The entry's samples, drawn with a seed that its name and type give. Raises Unavailable."""
    import torch

    seed = int.from_bytes(hashlib.blake2b(f"{entry.full_name}-{dtype}".encode(), digest_size=4).digest(), "big")
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - what op_db draws from
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if dtype == ERRORS:
                yield from entry.error_inputs("cpu")
            else:
                yield from entry.sample_inputs("cpu", getattr(torch, dtype), requires_grad=False)
    except Exception as error:
        raise Unavailable(f"torch cannot draw samples of {entry.full_name}: {type(error).__name__}: {error}") from error


def _sample(entry: Any, given: Any) -> Sample:  # noqa: ANN401 - an OpInfo and a SampleInput
    import torch
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten(((given.input, *given.args), given.kwargs))
    tensors = tuple(leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor))
    module = _module(entry, leaves, spec)
    return Sample(module, tensors, isinstance(entry, (UnaryUfuncInfo, BinaryUfuncInfo)))


def _module(entry: Any, leaves: Sequence[Any], spec: Any) -> Any:  # noqa: ANN401
    import torch
    from torch.utils import _pytree as pytree

    class Call(torch.nn.Module):
        """The operator, its tensors as inputs."""

        def forward(self, *tensors: Any) -> Any:  # noqa: ANN401
            given = iter(tensors)
            filled = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            args, kwargs = pytree.tree_unflatten(filled, spec)
            return _ties_settled(entry.name, args, kwargs, entry.op(*args, **kwargs))

        def widened(self) -> Any:  # noqa: ANN401
            """The same with types among the arguments in float64."""
            wide = {torch.float32: torch.float64, torch.float16: torch.float64, torch.bfloat16: torch.float64}
            wide[torch.complex64] = wide[torch.complex32] = torch.complex128
            return _module(
                entry, [wide.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf for leaf in leaves], spec
            )

    return Call().eval()


_TIED: Final[Mapping[str, tuple[str, ...]]] = {
    "sort": ("dim",),
    "argsort": ("dim",),
    "kthvalue": ("k", "dim", "keepdim"),
    "mode": ("dim", "keepdim"),
    "topk": ("k", "dim"),
}
"""Operators that may name the place of any of several equal elements -> their arguments behind the tensor."""


def _ties_settled(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Any:  # noqa: ANN401
    """Of places that PyTorch leaves open between equal elements, what stands there; else the result itself."""
    if name not in _TIED or not getattr(args[0], "ndim", 0):
        return result
    given = dict(zip(_TIED[name], args[1:], strict=False)) | dict(kwargs)
    dim = given.get("dim", -1)
    values, places = (None, result) if name == "argsort" else (result[0], result[1])
    reduced = name in ("kthvalue", "mode") and not given.get("keepdim", False)
    found = args[0].gather(dim, places.unsqueeze(dim) if reduced else places)
    found = found.squeeze(dim) if reduced else found
    return found if values is None else (values, found)


def _count() -> dict[str, dict[str, int]]:
    import torch

    found: dict[str, dict[str, int]] = {}
    for name, entry in sorted(_entries().items()):
        types = [dtype for dtype in TYPES if getattr(torch, dtype) in entry.dtypes]
        types += [ERRORS] if entry.error_inputs_func is not None else []
        counts = {dtype: sum(1 for _ in _draw(entry, dtype)) for dtype in types}
        found[name] = {dtype: count for dtype, count in counts.items() if count}
    return {name: counts for name, counts in found.items() if counts}


def main() -> None:
    """Count the samples of the torch that is installed and write them down."""
    import torch

    text = yaml.safe_dump(
        {"torch": torch.__version__.partition("+")[0], "samples": _count()}, default_flow_style=None, width=200
    )
    COUNTS.write_text(
        "# Samples of PyTorch's op_db by entry and type; written by `python -m conformance.suites.opinfo_samples`.\n"
        + text,
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
