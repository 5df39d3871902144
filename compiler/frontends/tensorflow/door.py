"""The ways in: concrete functions, functions and Keras models, SavedModels, .keras files, frozen GraphDefs."""

from __future__ import annotations

import contextlib
import logging
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from compiler.errors import InvalidModel
from compiler.frontends.tensorflow.importer import import_program, signature
from compiler.frontends.tensorflow.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from compiler.ir import Array, Graph, Type

_SAVED: Final = "saved_model.pb"
_DEFAULT: Final = "serving_default"


def import_tensorflow(
    model: Any,  # noqa: ANN401 - what program_of takes
    inputs: Sequence[Any] | None = None,
    *,
    types: Mapping[str, Type] | None = None,
    known: Mapping[str, Array] | None = None,
) -> Graph:
    """The graph of a TensorFlow model; see :func:`program_of` and ``import_program`` for what it takes and raises."""
    return import_program(program_of(model, inputs), types=types, known=known)


def import_signature(model: Any) -> Graph:  # noqa: ANN401
    """A graph with the model's inputs and output names and no operations: for one that inputs decide."""
    return signature(program_of(model))


def program_of(model: Any, inputs: Sequence[Any] | None = None, *, name: str | None = None) -> Program:  # noqa: ANN401
    """The traced graph of a TensorFlow model.

    ``model`` is a concrete function, a ``tf.function`` or Keras model (``inputs``: example arrays or specs, needed
    where it does not know them itself), a GraphDef, or a path: the folder of a SavedModel, a .keras file, a frozen .pb.
    ``name`` is the signature of a SavedModel; by default serving_default, or the only one.

    Raises InvalidModel with one line for what cannot be read or traced.
    """
    if isinstance(model, Program):
        return model
    with _quiet():
        try:
            import tensorflow as tf
        except ImportError as error:
            raise InvalidModel(
                f"reading {model} needs TensorFlow, which is not installed: pip install 'opatlas[tensorflow]'"
            ) from error
        if isinstance(model, (str, Path)):
            return _from_path(Path(model), name)
        if isinstance(model, tf.types.experimental.ConcreteFunction):
            return _from_function(model)
        if isinstance(model, tf.compat.v1.GraphDef):
            return _from_graph_def(model, "")
        if isinstance(model, tf.keras.Layer):
            return _from_keras(model, inputs)
        if hasattr(model, "get_concrete_function"):
            return _from_function(_traced(model, inputs))
    raise InvalidModel(
        f"a TensorFlow object of type {type(model).__name__} cannot be read; expected a concrete function, a "
        "tf.function, a Keras model or a GraphDef"
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """TensorFlow's greetings and advice on standard error are no diagnoses; what a user set comes back."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    logger = logging.getLogger("tensorflow")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _first_line(error: BaseException) -> str:
    lines = (line.strip() for line in str(error).splitlines())
    return f"{type(error).__name__}: {next((line for line in lines if line), 'no message')}"


def _from_path(path: Path, name: str | None) -> Program:
    if path.is_dir():
        return _from_saved_model(path, name)
    if not path.is_file():
        raise InvalidModel(f"file {path} does not exist")
    if path.suffix == ".keras":
        return _from_keras_file(path)
    return _from_frozen(path)


def _from_saved_model(path: Path, name: str | None) -> Program:
    with loaded_session(path, name) as (_, program):
        return program


@contextlib.contextmanager
def loaded_session(path: Path, name: str | None = None) -> Iterator[tuple[Any, Program]]:
    """A session that holds a SavedModel, and its program, read by the loader that serving uses.

    That loader needs the graph and the values alone, and none of the model's Python objects. Inputs and outputs are in
    the order of their keys, which is how ``tf.nest`` flattens a dictionary. Raises InvalidModel.
    """
    import tensorflow as tf

    if not (path / _SAVED).is_file():
        raise InvalidModel(f"folder {path} is no SavedModel: it has no file {_SAVED}")
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
        try:
            loaded = tf.compat.v1.saved_model.load(session, [tf.saved_model.SERVING], str(path))
            captured = _values(graph, session)
        except Exception as error:
            # TensorFlow raises whatever its readers of protobufs and checkpoints do.
            raise InvalidModel(f"SavedModel {path} cannot be loaded: {_first_line(error)}") from error
        chosen = loaded.signature_def[_signature_name(path, loaded.signature_def, name)]
        ends = [_ends(path, graph, infos) for infos in (chosen.inputs, chosen.outputs)]
        library = _library(graph.as_graph_def())
        yield session, Program(graph, ends[0], ends[1], captured, source=path.name, library=library)


def _library(definition: Any) -> dict[str, Any]:  # noqa: ANN401 - a GraphDef
    return {found.signature.name: found for found in definition.library.function}


def _signature_name(path: Path, signatures: Any, name: str | None) -> str:  # noqa: ANN401
    """The signature that is asked for, else the default one, else the only one. Raises InvalidModel."""
    names = sorted(found for found in signatures if not found.startswith("__") and signatures[found].outputs)
    if not names:
        raise InvalidModel(
            f"SavedModel {path} has no signature; save it with `tf.saved_model.save(model, path, "
            "signatures=model.function.get_concrete_function(...))`"
        )
    if name is None and _DEFAULT not in names and len(names) > 1:
        raise InvalidModel(f"SavedModel {path} has signatures {names} and no '{_DEFAULT}'; expected one to be chosen")
    chosen = name if name is not None else _DEFAULT if _DEFAULT in names else names[0]
    if chosen not in names:
        raise InvalidModel(f"SavedModel {path} has no signature '{chosen}'; expected one of {names}")
    return chosen


def _values(graph: Any, session: Any) -> dict[str, Array]:  # noqa: ANN401
    """The values of all variables that have one, by the name of the node that gives their handle."""
    import tensorflow as tf

    operations = graph.get_operations()
    handles = {operation.name: operation.outputs[0] for operation in operations if operation.type == "VarHandleOp"}
    there = session.run({name: tf.raw_ops.VarIsInitializedOp(resource=handle) for name, handle in handles.items()})
    reads = {
        name: tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.as_dtype(handle.op.get_attr("dtype")))
        for name, handle in handles.items()
        if there[name]
    } | {operation.name: operation.outputs[0] for operation in operations if operation.type == "VariableV2"}
    values: dict[str, Array] = session.run(reads)
    return values


def _ends(path: Path, graph: Any, infos: Any) -> tuple[tuple[str, Any], ...]:  # noqa: ANN401
    found = []
    for key in sorted(infos):
        if infos[key].WhichOneof("encoding") != "name":
            raise InvalidModel(f"SavedModel {path}: '{key}' of the signature is no dense tensor")
        found.append((str(key), graph.get_tensor_by_name(infos[key].name)))
    return tuple(found)


def _from_keras_file(path: Path) -> Program:
    import tensorflow as tf

    if not zipfile.is_zipfile(path):
        raise InvalidModel(f"file {path} is no Keras model: a .keras file is a zip archive, and this is none")
    try:
        model = tf.keras.models.load_model(path, compile=False, safe_mode=True)
    except Exception as error:
        # Keras raises whatever the layers that a file names do.
        raise InvalidModel(f"file {path} cannot be loaded by Keras: {_first_line(error)}") from error
    return _from_keras(model, None, path.name)


def _from_frozen(path: Path) -> Program:
    import tensorflow as tf

    definition = tf.compat.v1.GraphDef()
    try:
        definition.ParseFromString(path.read_bytes())
    except Exception as error:
        # The class differs between protobuf's implementations.
        raise InvalidModel(f"file {path} is no GraphDef: {_first_line(error)}") from error
    if not definition.node:
        raise InvalidModel(f"file {path} is no GraphDef with nodes in it")
    return _from_graph_def(definition, path.name)


def _from_graph_def(definition: Any, source: str) -> Program:  # noqa: ANN401
    """Inputs are the placeholders, outputs what no node uses, both in the order of the nodes."""
    import tensorflow as tf

    graph = tf.Graph()
    try:
        with graph.as_default():
            tf.graph_util.import_graph_def(definition, name="")
    except Exception as error:
        # Unknown operators, missing inputs, types that do not fit: TensorFlow has many classes for them.
        raise InvalidModel(f"GraphDef {source or 'given'} cannot be read: {_first_line(error)}") from error
    operations = graph.get_operations()
    inputs = [operation.outputs[0] for operation in operations if operation.type == "Placeholder"]
    used = {value.name for operation in operations for value in operation.inputs}
    outputs = [
        (operation.name if position == 0 else f"{operation.name}:{position}", value)
        for operation in operations
        if operation.type not in ("Placeholder", "Const") and all(value.name not in used for value in operation.outputs)
        for position, value in enumerate(operation.outputs)
    ]
    if not outputs:
        raise InvalidModel(f"GraphDef {source or 'given'} has no outputs: every node is used by another or is constant")
    named = tuple((value.op.name, value) for value in inputs)
    return Program(graph, named, tuple(outputs), source=source, library=_library(definition))


def _from_function(function: Any, *, source: str = "", owner: Any = None) -> Program:  # noqa: ANN401
    """A concrete function: its inputs and outputs in the flattened order, what it captures by placeholder."""
    graph, outer = function.graph, function.captured_inputs
    count = len(graph.inputs) - len(outer)
    captured = {inner.op.name: value for inner, value in zip(graph.inputs[count:], outer, strict=True)}
    inputs = tuple((str(value.op.name), value) for value in graph.inputs[:count])
    return Program(
        graph, inputs, _named_outputs(function), captured, source=source, traced=not source, owner=(owner, function)
    )


def _named_outputs(function: Any) -> tuple[tuple[str, Any], ...]:  # noqa: ANN401
    """Outputs by the keys of a dictionary, else numbered."""
    structured = function.structured_outputs
    values = list(function.graph.outputs)
    if isinstance(structured, dict) and all(hasattr(item, "dtype") for item in structured.values()):
        keys = sorted(structured)
        if len(keys) == len(values):
            return tuple((str(key), value) for key, value in zip(keys, values, strict=True))
    return tuple((f"output_{position}", value) for position, value in enumerate(values))


def _specs(inputs: Sequence[Any]) -> list[Any]:
    import tensorflow as tf

    return [
        item if isinstance(item, tf.TensorSpec) else tf.TensorSpec(np.shape(item), tf.as_dtype(np.asarray(item).dtype))
        for item in inputs
    ]


def _traced(function: Any, inputs: Sequence[Any] | None) -> Any:  # noqa: ANN401
    """The concrete function of a tf.function."""
    if inputs is None and getattr(function, "input_signature", None) is None:
        raise InvalidModel(
            f"function {getattr(function, '__name__', function)} comes without inputs; expected example inputs or an "
            "input_signature, by which it is traced"
        )
    try:
        return function.get_concrete_function(*_specs(inputs or ()))
    except Exception as error:
        # Whatever a user's function raises while it is traced comes out here.
        raise InvalidModel(
            f"function {getattr(function, '__name__', '')} cannot be traced: {_first_line(error)}"
        ) from error


def _from_keras(model: Any, inputs: Sequence[Any] | None, source: str = "") -> Program:  # noqa: ANN401
    """A Keras model or layer as it is at inference; dim 0 of its own inputs is the batch."""
    import tensorflow as tf

    own = inputs is None
    if own:
        found = getattr(model, "inputs", None)
        if not found:
            raise InvalidModel(
                f"Keras object {type(model).__name__} has no known inputs; expected a built functional or sequential "
                "model, or example inputs"
            )
        specs = [tf.TensorSpec(item.shape, item.dtype, name=_name_of(item.name)) for item in found]
    else:
        specs = _specs(inputs or ())
    structure = getattr(model, "_inputs_struct", None) if own else None

    def call(*values: Any) -> Any:  # noqa: ANN401
        if structure is not None:
            return model(tf.nest.pack_sequence_as(structure, values), training=False)
        return model(values[0] if len(values) == 1 else list(values), training=False)

    try:
        function = tf.function(call, autograph=False).get_concrete_function(*specs)
    except Exception as error:
        # Whatever a layer's call raises while it is traced comes out here.
        raise InvalidModel(f"Keras model {model.name} cannot be traced: {_first_line(error)}") from error
    found_program = _from_function(function, source=source, owner=model)
    return Program(
        found_program.graph,
        found_program.inputs,
        _keras_outputs(model, found_program) if own else found_program.outputs,
        found_program.captured,
        source=source,
        batched=own,
        traced=found_program.traced,
        owner=found_program.owner,
    )


def _name_of(name: str) -> str:
    return name.split(":", maxsplit=1)[0].replace("/", "_")


def _keras_outputs(model: Any, program: Program) -> tuple[tuple[str, Any], ...]:  # noqa: ANN401
    """Outputs by the names that the model itself has for them, where these tell them apart."""
    names = [str(name) for name in getattr(model, "output_names", ())]
    if len(names) != len(program.outputs) or len(set(names)) != len(names):
        return program.outputs
    return tuple((name, value) for name, (_, value) in zip(names, program.outputs, strict=True))
