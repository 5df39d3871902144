"""Where values come from: placeholders, constants, variables; and nodes that pass them on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.frontends.tensorflow.site import Item, Results, Site, converts
from compiler.frontends.tensorflow.types import element_from
from compiler.frontends.tensorflow.variables import Variable
from compiler.ir import Constant, Value

if TYPE_CHECKING:
    from compiler.frontends.tensorflow.variables import Variable as _Variable


@converts("Placeholder")
def placeholder(site: Site) -> Results:
    """An input is known before; what is left is captured from outside the graph."""
    found = site.body.captured(site.operation)
    if found is None:
        site.refuse("it is no input of the model and stands for no captured value")
    return found


@converts("VarHandleOp", "VariableV2")
def variable_of_graph(site: Site) -> Results:
    """A variable whose value came with the graph."""
    found = site.body.captured(site.operation)
    if found is None:
        site.refuse("the graph holds no value of this variable: freeze it, or save it as a SavedModel")
    return found


@converts("Const")
def const(site: Site) -> Value:
    """A constant, not copied where TensorFlow does not."""
    import tensorflow as tf

    site.element()
    return site.b.constant(Constant.of(np.asarray(tf.make_ndarray(site.attr("value")))))


@converts("ReadVariableOp")
def read_variable(site: Site) -> Value:
    """A variable's value as it is now."""
    element_from(site.attr("dtype"), f"variable of node '{site.operation.name}'")
    return site.b.constant(Constant.of(variable(site, 0).read(site.attr("dtype"))))


def variable(site: Site, index: int) -> _Variable:
    """Input ``index``, the handle of a variable. Raises UnsupportedOperator."""
    found = site.inputs[index]
    if not isinstance(found, Variable):
        site.refuse(f"input {index} is no variable that has a value: freeze the graph")
    return found


@converts(
    "Identity", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics", "CheckNumericsV2", "GuaranteeConst",
    "PlaceholderWithDefault", "EnsureShape", "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3", "DeepCopy", "Copy",
    "CopyHost",
)  # fmt: skip
def identity(site: Site) -> Value | Item | None:
    """The input itself. EnsureShape's shape is one that TensorFlow's inference, and so the value's type, has."""
    return site.inputs[0]


@converts("IdentityN")
def identity_n(site: Site) -> Results:
    """The inputs themselves."""
    return list(site.inputs)


@converts("NoOp", "Assert", "Print", "PrintV2", "TensorSummaryV2")
def no_op(site: Site) -> Results:  # noqa: ARG001
    """Nothing that a compiled model does."""
    return None


@converts("VarIsInitializedOp")
def has_value(site: Site) -> Value:
    """Whether a variable has a value: those that are read here do."""
    variable(site, 0)
    return site.b.constant(np.array(True))
