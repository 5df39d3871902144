"""The activation functions that ONNX's recurrent operators choose by name, with their parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from compiler.ops.activation import softplus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from compiler.ir import Array, Value
    from compiler.ops.compose import Emit


@dataclass(frozen=True, slots=True)
class Activation:
    """A function of x, alpha and beta, as a decomposition and on arrays; None for a parameter that it lacks."""

    emit: Callable[[Emit, Value, float, float], Value]
    array: Callable[[Array, float, float], Array]
    alpha: float | None = None
    beta: float | None = None


def _affine(emit: Emit, x: Value, alpha: float, beta: float) -> Value:
    return emit("add", emit("mul", x, alpha), beta)


def _hard_sigmoid(emit: Emit, x: Value, alpha: float, beta: float) -> Value:
    return emit("max", emit("min", _affine(emit, x, alpha, beta), 1.0), 0.0)


def _elu(emit: Emit, x: Value, alpha: float, beta: float) -> Value:
    del beta
    return emit("select", emit("lt", x, 0.0), emit("mul", emit("expm1", x), alpha), x)


def _softplus(x: Array, alpha: float, beta: float) -> Array:
    del alpha, beta
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


ACTIVATIONS: Final[dict[str, Activation]] = {
    "relu": Activation(lambda e, x, _a, _b: e("max", x, 0.0), lambda x, _a, _b: np.maximum(x, 0)),
    "tanh": Activation(lambda e, x, _a, _b: e("tanh", x), lambda x, _a, _b: np.tanh(x)),
    "sigmoid": Activation(lambda e, x, _a, _b: e("logistic", x), lambda x, _a, _b: np.asarray(1 / (1 + np.exp(-x)))),
    "affine": Activation(_affine, lambda x, a, b: np.asarray(a * x + b), 1.0, 0.0),
    "leakyrelu": Activation(
        lambda e, x, a, _b: e("select", e("lt", x, 0.0), e("mul", x, a), x),
        lambda x, a, _b: np.where(x < 0, a * x, x),
        0.01,
    ),
    "thresholdedrelu": Activation(
        lambda e, x, a, _b: e("select", e("gt", x, a), x, 0.0), lambda x, a, _b: np.where(x > a, x, 0), 1.0
    ),
    "scaledtanh": Activation(
        lambda e, x, a, b: e("mul", e("tanh", e("mul", x, b)), a),
        lambda x, a, b: np.asarray(a * np.tanh(b * x)),
        1.0,
        1.0,
    ),
    "hardsigmoid": Activation(_hard_sigmoid, lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": Activation(_elu, lambda x, a, _b: np.where(x < 0, a * np.expm1(x), x), 1.0),
    "softsign": Activation(
        lambda e, x, _a, _b: e("div", x, e("add", e("abs", x), 1.0)), lambda x, _a, _b: np.asarray(x / (1 + np.abs(x)))
    ),
    "softplus": Activation(lambda e, x, _a, _b: softplus(e, x), _softplus),
}
"""By ONNX's name in lower case. Defaults: ONNX's operators of the same names; Affine and ScaledTanh: the identity's."""


@dataclass(frozen=True, slots=True)
class Applied:
    """An activation with its parameters."""

    activation: Activation
    alpha: float
    beta: float

    def emit(self, emit: Emit, x: Value) -> Value:
        """Build the function of x."""
        return self.activation.emit(emit, x, self.alpha, self.beta)

    def array(self, x: Array) -> Array:
        """The function of x."""
        return self.activation.array(x, self.alpha, self.beta)


def applied(names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]) -> list[Applied]:
    """The activations of these names, in any case; each that has an alpha or a beta takes the next one given."""
    next_alpha, next_beta = iter(alphas), iter(betas)

    def take(default: float | None, values: Iterator[float]) -> float:
        return 0.0 if default is None else next(values, default)

    found = [ACTIVATIONS[name.lower()] for name in names]
    return [Applied(one, take(one.alpha, next_alpha), take(one.beta, next_beta)) for one in found]
