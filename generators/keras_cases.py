"""Cases of Keras' layers and networks: their ids, their source, and the function that each one is."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from generators.render import draws_source
from generators.tensorflow_build import TensorflowProgram
from generators.tensorflow_source import environment
from opsets.elements import numpy_source
from opsets.errors import ManifestError
from opsets.keras_manifest import KINDS, KerasEntry, load_keras_manifest

_NAMES = "xyz"
_UNSAFE = re.compile(r"[^\w.,=+~-]+")
_LONGEST = 150


@dataclass(frozen=True, slots=True)
class KerasCase:
    """One option of a layer, or one network: ``kind`` is layers or applications, ``entry`` the manifest's name."""

    kind: str
    entry: str
    option: str
    dtype: str
    mode: str
    id: str

    @property
    def name(self) -> str:
        """The layer's or network's own name."""
        return self.entry.partition("-")[0]

    @property
    def seed(self) -> int:
        """Seed of the draws: 32 bits of a hash of the id."""
        return int.from_bytes(hashlib.blake2b(self.id.encode(), digest_size=4).digest(), "big")


def expand_keras() -> Iterator[KerasCase]:
    """Every case in order, without importing Keras. The first option of a layer has known sizes, others any batch."""
    for kind in KINDS:
        for entry, body in load_keras_manifest(kind).layers.items():
            options = body.options or [f"{entry}(weights=None, input_shape={tuple(body.inputs[0][1:])}, classes=10)"]
            for place, option in enumerate(options):
                for dtype in body.types:
                    mode = "static" if place == 0 else "symbolic"
                    shown = entry if kind == "applications" else f"{entry}-{_text(option, entry)}"
                    text = f"tensorflow-keras-{kind}-{shown}-{dtype}-{mode}"
                    yield KerasCase(kind, entry, option, dtype, mode, text)


def _text(option: str, entry: str) -> str:
    """An option as an id may hold it, without the layer's own name in front."""
    shown = option.removeprefix(entry.partition("-")[0]).replace("keras.layers.", "")
    text = _UNSAFE.sub("~", shown).strip("~") or "default"
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 11]}~{hashlib.blake2b(option.encode(), digest_size=5).hexdigest()}"
    return text


def keras_entry(case: KerasCase) -> KerasEntry:
    """The manifest's entry of a case. Raises ManifestError."""
    found = load_keras_manifest(case.kind).layers.get(case.entry)
    if found is None:
        raise ManifestError(f"keras.{case.kind}: found no entry '{case.entry}', expected one of the manifest's")
    return found


def input_shapes(case: KerasCase) -> tuple[tuple[int, ...], ...]:
    """Shapes of the inputs of a case."""
    entry = keras_entry(case)
    return tuple((*shape[:-1], shape[-1] + shape[-1] % 2 * entry.even) for shape in entry.inputs)


def keras_source(case: KerasCase, *, wide: bool = False) -> str:
    """Source of a case; ``wide`` in float64, on the same inputs and weights."""
    entry = keras_entry(case)
    shapes = input_shapes(case)
    names = list(_NAMES[: len(shapes)])
    computed = "float64" if wide else case.dtype
    drawn = [
        f"random(rng, {shape}, {numpy_source(case.dtype)})"
        if entry.integers is None
        else f"integers(rng, {shape}, np.int32, 0, {entry.integers})"
        for shape in shapes
    ]
    typed = "int32" if entry.integers is not None else computed
    return environment().get_template("keras.jinja").render(
        option=f"keras.{case.kind}.{case.option}",
        before=entry.before,
        names=names,
        drawn=[f"{code}.astype(np.float64)" if wide and entry.integers is None else code for code in drawn],
        specs=[_spec(shape, typed, case.mode) for shape in shapes],
        call=entry.call or (f"layer({names[0]}, training=False)" if case.kind == "applications" else "layer(x)"),
        stored=numpy_source(case.dtype),
        seed=f"0x{case.seed:08x}",
    )  # fmt: skip


def _spec(shape: tuple[int, ...], element: str, mode: str) -> str:
    sizes = [None if mode == "symbolic" and place == 0 else size for place, size in enumerate(shape)]
    return f"tf.TensorSpec({sizes}, tf.{element})"


def render_keras(case: KerasCase) -> str:
    """Source that anyone can run with numpy, ml_dtypes and Keras on TensorFlow."""
    code = keras_source(case)
    return environment().get_template("keras_reproducer.jinja").render(case=case, code=code, draws=draws_source(code))


def build_keras(case: KerasCase, *, wide: bool = False) -> TensorflowProgram:
    """The function of a case and its inputs, by executing its source. Raises ImportError without Keras."""
    import keras
    import ml_dtypes
    import numpy as np
    import tensorflow as tf

    from generators import draws

    functions = {name: value for name, value in vars(draws).items() if inspect.isfunction(value)}
    scope: dict[str, Any] = {**functions, "np": np, "ml_dtypes": ml_dtypes, "tf": tf, "keras": keras}
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64" if wide else case.dtype)
    try:
        code = compile(keras_source(case, wide=wide), f"<{case.id}>", "exec", dont_inherit=True)
        exec(code, scope)  # noqa: S102 - our own templates
    finally:
        keras.config.set_dtype_policy(policy)
    return TensorflowProgram(scope["model"], scope["VALUES"])
