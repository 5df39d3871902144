"""Random numbers. These operators are not pure: without a seed two runs differ, and no pass may fold or merge them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from compiler.errors import EvaluationError, TypeMismatch
from compiler.ir import I32, UNKNOWN, Type, tensor
from compiler.ops.convert import convert
from compiler.ops.creation import TO, shaped, sizes_of
from compiler.ops.movement import value_operand
from compiler.ops.registry import FLOAT, NUMBER, Attribute, Operand, Operator, Variable, integer, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.ir import Call, RunRegion

SEED: Final = Attribute("seed", NUMBER, None, "makes the numbers the same each time; absent: fresh ones")


def generator(call: Call) -> np.random.RandomState:
    """Numpy's generator for the call's seed.

    ONNX leaves the numbers open; for whole seeds they are those of ``numpy.random.seed``, with which its own expected
    values are drawn. Of other seeds all bits count.
    """
    if call.get("seed") is None:
        return np.random.RandomState(np.random.MT19937())
    seed = call.number("seed")
    is_whole = 0 <= seed < 2**32 and float(seed).is_integer()
    state = int(seed) if is_whole else np.frombuffer(np.float64(seed).tobytes(), np.uint32)
    return np.random.RandomState(state)


class Sampled(Operator):
    """Base of the operators that fill a shape with numbers of their own."""

    operands: ClassVar[tuple[Operand, ...]] = (value_operand("shape"),)
    pure: ClassVar[bool] = False
    generative: ClassVar[bool] = True

    def infer(self, call: Call) -> tuple[Type, ...]:
        """The shape's sizes."""
        return (shaped(call, 0, call.element("to")),)


@register
class RandomNormal(Sampled):
    """Numbers of the normal distribution with the given mean and standard deviation."""

    name: ClassVar[str] = "random_normal"
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("mean", NUMBER, 0.0, "mean"),
        Attribute("scale", NUMBER, 1.0, "standard deviation"),
        SEED,
        TO,
    )

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Drawn in float64."""
        shape = sizes_of(self.name, operands[0])
        drawn = generator(call).normal(call.number("mean"), call.number("scale"), shape)
        return (convert(np.asarray(drawn), call.element("to")),)


@register
class RandomUniform(Sampled):
    """Numbers evenly distributed over low <= x < high."""

    name: ClassVar[str] = "random_uniform"
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("low", NUMBER, 0.0, "lower bound"),
        Attribute("high", NUMBER, 1.0, "upper bound"),
        SEED,
        TO,
    )

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Drawn in float64."""
        shape = sizes_of(self.name, operands[0])
        drawn = generator(call).uniform(call.number("low"), call.number("high"), shape)
        return (convert(np.asarray(drawn), call.element("to")),)


@register
class Bernoulli(Operator):
    """1 with probability x, else 0, for each element (ONNX Bernoulli)."""

    name: ClassVar[str] = "bernoulli"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", FLOAT)),)
    attributes: ClassVar[tuple[Attribute, ...]] = (SEED, TO)
    pure: ClassVar[bool] = False

    def infer(self, call: Call) -> tuple[Type, ...]:
        """X's dims."""
        return (tensor(call.element("to"), call.tensor(0).dims),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Uniform numbers below x."""
        x = np.asarray(operands[0]).astype(np.float64)
        return (convert(np.asarray(generator(call).random(x.shape) < x), call.element("to")),)


@register
class Multinomial(Operator):
    """``samples`` classes a row of x [batch, classes], unnormalized log-probabilities (ONNX Multinomial)."""

    name: ClassVar[str] = "multinomial"
    operands: ClassVar[tuple[Operand, ...]] = (Operand("x", Variable("T", FLOAT)),)
    attributes: ClassVar[tuple[Attribute, ...]] = (
        Attribute("samples", integer(0), 1, "number drawn a row, with replacement"),
        SEED,
        Attribute("to", TO.domain, I32, "element type of the result"),
    )
    pure: ClassVar[bool] = False

    def infer(self, call: Call) -> tuple[Type, ...]:
        """[batch, samples]. Raises TypeMismatch for another rank than 2."""
        x, element = call.tensor(0), call.element("to")
        if x.dims is None:
            return (tensor(element, (UNKNOWN, call.integer("samples"))),)
        if x.rank != 2:
            msg = f"multinomial: operand 'x' is {x}; expected two dims"
            raise TypeMismatch(msg)
        return (tensor(element, (x.dims[0], call.integer("samples"))),)

    def evaluate(self, call: Call, operands: Sequence[Any], run_region: RunRegion) -> tuple[Any, ...]:  # noqa: ARG002
        """Drawn by the inverse of the cumulative distribution. Raises EvaluationError where there is no class."""
        x = np.asarray(operands[0]).astype(np.float64)
        if x.shape[1] == 0:
            msg = f"multinomial: operand 'x' has shape {list(x.shape)}; expected at least one class"
            raise EvaluationError(msg)
        weights = np.exp(x - x.max(1, keepdims=True))
        bounds = np.cumsum(weights, 1)
        drawn = generator(call).random((x.shape[0], call.integer("samples"))) * bounds[:, -1:]
        rows = [np.searchsorted(bound, row, "right") for bound, row in zip(bounds, drawn, strict=True)]
        found = np.array(rows, np.int64).reshape(drawn.shape)
        return (convert(np.minimum(found, x.shape[1] - 1), call.element("to")),)
