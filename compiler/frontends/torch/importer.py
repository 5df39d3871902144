"""From a ``torch.export`` program to a graph: call by call, without torch's own decompositions."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

from compiler.errors import InvalidModel, UnsupportedOperator, UnsupportedType, ValueNeeded
from compiler.frontends.onnx.fold import Folder
from compiler.frontends.torch import converters, higher_order, symbolic
from compiler.frontends.torch.converters.common import cast
from compiler.frontends.torch.fallback import decomposed
from compiler.frontends.torch.memory import Place
from compiler.frontends.torch.site import Site, converter_for, result_values
from compiler.frontends.torch.types import constant_from, dim_from, element_from, type_from
from compiler.ir import BOOL, F64, I64, UNKNOWN, UNKNOWN_LOCATION, Builder, Graph, TensorType, Type, Value, at, tensor
from compiler.onnx_types import refined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import torch

_DECISIVE: Final = frozenset({"dropout", "dropout_p", "steps"})
"""Arguments that ask for what a compiled model does not do, or does otherwise, whatever it is decomposed into."""

_VIEWS_OF_CONTIGUOUS: Final = frozenset({
    "reshape", "flatten", "unflatten", "expand_as", "view_as", "chunk", "split", "tensor_split", "narrow",
    "movedim", "moveaxis", "swapaxes", "swapdims", "contiguous", "to", "type_as", "atleast_1d", "atleast_2d",
    "atleast_3d", "ravel", "reshape_as",
})  # fmt: skip
"""Operators that give a view where they can; in programs read from a file tensors share no memory any more."""


def import_exported_program(program: torch.export.ExportedProgram, *, types: Mapping[str, Type] | None = None) -> Graph:
    """The graph of an exported program, with its symbolic dims.

    Inputs are the program's tensors and symbolic numbers in torch's flattened order, outputs likewise; those that are
    None are left out. An input that is written to keeps its value for the caller; ``types`` gives more precise types.

    Raises UnsupportedOperator for operators and forms without a conversion and for buffers that are written to,
    UnsupportedType, InvalidModel.
    """
    return _Program(program, types or {}).graph()


def signature(program: torch.export.ExportedProgram) -> Graph:
    """A graph with the program's inputs and output names and no operations."""
    return _Program(program, {}).signature()


class _Program:
    """The whole program: inputs, weights, outputs."""

    def __init__(self, program: Any, types: Mapping[str, Type]) -> None:  # noqa: ANN401
        self._program = program
        self._types = types

    def graph(self) -> Graph:
        graph = Graph("main")
        body = Body(Builder(graph), Folder(concrete=bool(self._types)))
        specs = {spec.arg.name: spec for spec in self._program.graph_signature.input_specs if hasattr(spec.arg, "name")}
        for node in self._program.graph.nodes:
            if node.op == "placeholder":
                body.env[node] = self._input(node, specs.get(node.name), body)
        body.run(self._program.graph_module, self._program.graph.nodes)
        body.b.location = UNKNOWN_LOCATION
        outputs, names = self._outputs(body)
        body.b.output(*outputs)
        graph.output_names = tuple(names)
        return graph

    def signature(self) -> Graph:
        graph = Graph("main")
        body = Body(Builder(graph), Folder())
        specs = {spec.arg.name: spec for spec in self._program.graph_signature.input_specs if hasattr(spec.arg, "name")}
        for node in self._program.graph.nodes:
            spec = specs.get(node.name)
            if node.op == "placeholder" and (spec is None or spec.kind.name == "USER_INPUT"):
                self._user_input(node, spec, body)
        outputs = [spec.arg for spec in self._program.graph_signature.output_specs if hasattr(spec.arg, "name")]
        graph.output_names = tuple(str(argument.name) for argument in outputs)
        body.b.output()
        return graph

    def _input(self, node: Any, spec: Any, body: Body) -> Any:  # noqa: ANN401
        kind = "USER_INPUT" if spec is None else spec.kind.name
        if kind == "USER_INPUT":
            return self._user_input(node, spec, body)
        data = self._weight(kind, spec)
        if data is None:
            raise UnsupportedType(
                f"input '{node.name}' of the program is a {kind.lower()}; expected tensors and numbers"
            )
        body.b.location = at(spec.target, kind.lower())
        try:
            value = body.b.constant(constant_from(data))
        except UnsupportedType as error:
            raise UnsupportedType(f"{kind.lower()} '{spec.target}': {error.message}") from error
        value.name = spec.target
        return Place.of(value, spec.target if kind == "BUFFER" else "")

    def _weight(self, kind: str, spec: Any) -> Any:  # noqa: ANN401
        program = self._program
        if kind == "PARAMETER" or (kind == "BUFFER" and spec.persistent is not False):
            return program.state_dict[spec.target]
        if kind in ("BUFFER", "CONSTANT_TENSOR"):
            return program.constants[spec.target]
        return None

    def _user_input(self, node: Any, spec: Any, body: Body) -> Any:  # noqa: ANN401
        fake = node.meta.get("val")
        if spec is not None and type(spec.arg).__name__ == "ConstantArgument":
            return spec.arg.value
        if hasattr(fake, "shape"):
            type_: Type = type_from(fake)
        elif fake is None or isinstance(fake, (int, float, bool, str)):
            return fake
        else:
            type_ = symbolic.type_of(fake)
        precise = self._types.get(node.name)
        if precise is not None:
            type_ = refined(precise, type_, f"input '{node.name}'")
        value = body.b.graph.add_input(type_, node.name)
        return Place.of(value) if hasattr(fake, "shape") else value

    def _outputs(self, body: Body) -> tuple[list[Value], list[str]]:
        specs = self._program.graph_signature.output_specs
        node = next(node for node in self._program.graph.nodes if node.op == "output")
        found: list[Value] = []
        names: list[str] = []
        for spec, item in zip(specs, node.args[0], strict=True):
            if spec.kind.name != "USER_OUTPUT":
                reason = f"it changes {spec.kind.name.lower().replace('_', ' ')} '{spec.target}'"
                raise UnsupportedOperator("aten", "copy_", None, f"{reason}, and a compiled model keeps no state")
            value = body.value(item)
            if value is None and fake_of(item) is not None:
                raise UnsupportedOperator(
                    "aten", str(item.target), None, "this result has no conversion", node=item.name
                )
            if value is None:
                continue
            found.append(value)
            names.append(str(getattr(spec.arg, "name", None) or f"output_{len(names)}"))
        return found, names


class Body:
    """The calls of a program, or of a part of it, with the tensors that its nodes stand for."""

    def __init__(self, builder: Builder, folder: Folder, source: str = "") -> None:
        self.b = builder
        self.folder = folder
        self.env: dict[Any, Any] = {}
        self.source = source

    def run(self, module: Any, nodes: Iterable[Any]) -> None:  # noqa: ANN401 - a GraphModule and its nodes
        """Convert the calls in order."""
        for node in nodes:
            if node.op == "get_attr":
                self.env[node] = self._attribute(module, node)
            elif node.op == "call_function":
                self.b.location = at(node.name, str(node.target), self.source)
                self.env[node] = self._call(module, node)
            elif node.op not in ("placeholder", "output"):
                raise InvalidModel(f"node '{node.name}' is a {node.op}; expected calls of operators alone")

    def _attribute(self, module: Any, node: Any) -> Any:  # noqa: ANN401
        import torch

        found = operator.attrgetter(node.target)(module)
        if isinstance(found, torch.Tensor):
            return Place.of(self.b.constant(constant_from(found)))
        return found

    def value(self, item: Any) -> Any:  # noqa: ANN401 - an argument of a call
        """An argument with the values that its nodes stand for; numbers of outputs become constants."""
        found = self.argument(item)
        if isinstance(found, (bool, int, float)):
            from compiler.frontends.torch.site import element_of_number

            return self.site("output").constant(found, element_of_number(found))
        return found

    def argument(self, item: Any) -> Any:  # noqa: ANN401
        """An argument with the current values of the tensors in it."""
        if isinstance(item, (list, tuple)):
            return [self.argument(part) for part in item]
        if hasattr(item, "op") and hasattr(item, "meta"):
            return self.argument(self.env[item])
        if isinstance(item, Place):
            return item.read()
        return item

    def _site(self, name: str, node: str, arguments: Mapping[str, Any], fakes: Mapping[str, Any], result: Any) -> Site:  # noqa: ANN401
        return Site(name, node, arguments, fakes, result, self.b, self.folder)

    def site(self, name: str) -> Site:
        """A site without arguments, for helpers that build operations."""
        return self._site(name, name, {}, {}, None)

    def _call(self, module: Any, node: Any) -> Any:  # noqa: ANN401
        target = node.target
        if target is operator.getitem:
            return self._getitem(node)
        if isinstance(target, type) and issubclass(target, tuple):
            # torch's decompositions put results in tuples with names.
            return [self.env[item] if hasattr(item, "meta") else item for item in node.args]
        if not hasattr(target, "_schema"):
            if symbolic.is_symbolic(target):
                site = self._site(str(target), node.name, {}, {}, node.meta.get("val"))
                return symbolic.convert(site, target, [self.argument(item) for item in node.args])
            return higher_order.convert(self, module, node)
        return self._operator(node)

    def _getitem(self, node: Any) -> Any:  # noqa: ANN401
        source = self.env[node.args[0]]
        return source[node.args[1]]

    def _operator(self, node: Any) -> Any:  # noqa: ANN401
        target = node.target
        schema = target._schema  # noqa: SLF001 - torch has no other way to a schema
        nodes = bound(schema, node.args, node.kwargs)
        name = f"{schema.name.split('::')[1]}.{schema.overload_name or 'default'}"
        arguments = {key: self.argument(item) for key, item in nodes.items()}
        fakes = {key: fake_of(item) for key, item in nodes.items()}
        namespace = schema.name.split("::")[0]
        site = self._site(f"{namespace}.{name}", node.name, arguments, fakes, node.meta.get("val"))
        if namespace == "aten" and symbolic.is_symbolic_operator(name):
            return symbolic.convert_operator(site, name)
        written = [
            argument.name for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write
        ]
        if written == ["self"] and functional_name(name, written)[0] in _RESIZING:
            return self._resize(site, functional_name(name, written)[0], nodes["self"])
        if tuple(written) == _STATISTICS and not site.get("training", True):
            written = []
        if not written and converter_for(name) is not None and _trains(site, name):
            written = list(_STATISTICS)
        if written:
            return self._write(site, name, nodes, written)
        results = self._convert(site, name, node)
        return self._places(site, name, node, nodes, results)

    def _convert(self, site: Site, name: str, node: Any) -> list[Any]:  # noqa: ANN401
        """The results of a functional operator: by its converter, else by torch's own decomposition of this node."""
        converter = (
            converter_for(name) if site.operator.startswith(("aten.", "prims.", "quantized_decomposed.")) else None
        )
        if converter is not None:
            try:
                return list(result_values(converter(site)))
            except ValueNeeded:
                raise
            except UnsupportedOperator as refusal:
                found = None if refusal.attribute in _DECISIVE else decomposed(self, site, node)
                if found is None:
                    raise
                return found
        found = decomposed(self, site, node)
        if found is None:
            raise UnsupportedOperator(
                site.operator.split(".")[0],
                name,
                None,
                "it has no conversion, and torch has no decomposition of it",
                node=site.node,
            )
        return found

    def _places(self, site: Site, name: str, node: Any, nodes: Mapping[str, Any], results: Sequence[Any]) -> Any:  # noqa: ANN401
        fakes = node.meta.get("val")
        several = isinstance(fakes, (list, tuple))
        made = []
        for index, value in enumerate(results):
            if not isinstance(value, Value):
                made.append(value)
                continue
            fake = fakes[index] if several else fakes
            refine(value, fake)
            parent = self._viewed(name, node, nodes, fake)
            if parent is None:
                made.append(Place.of(value))
            else:
                made.append(parent.view(_replay(self, site, name, nodes, index), value))
        return made if several else (made[0] if made else None)

    def _viewed(self, name: str, node: Any, nodes: Mapping[str, Any], fake: Any) -> Place | None:  # noqa: ANN401
        """The tensor of which a result is a view, or None."""
        first = next(
            (item for item in nodes.values() if hasattr(item, "meta") and isinstance(self.env.get(item), Place)), None
        )
        if first is None or not hasattr(fake, "untyped_storage"):
            return None
        parent, place = first.meta.get("val"), self.env[first]
        if not hasattr(parent, "untyped_storage"):
            return None
        shares = parent.untyped_storage()._cdata == fake.untyped_storage()._cdata  # noqa: SLF001
        declared = any(found.alias_info and not found.alias_info.is_write for found in node.target._schema.returns)  # noqa: SLF001
        if name.partition(".")[0] in _VIEWS_OF_CONTIGUOUS:
            declared = parent.dtype == fake.dtype and parent.is_contiguous()
        found: Place | None = place if shares or declared else None
        return found

    def _write(self, site: Site, name: str, nodes: Mapping[str, Any], written: Sequence[str]) -> Any:  # noqa: ANN401
        """A write in place: the functional operator of the same name, whose result its first argument then is."""
        if list(written) == list(_STATISTICS):
            return self._write_statistics(site, name, node_values=nodes)
        functional, changes_view = functional_name(name, written)
        converter = converter_for(functional)
        target = self.env[nodes[written[0]]]
        if converter is None or len(written) > 1 or not isinstance(target, Place):
            site.refuse(f"it writes to {', '.join(written)}, which has no conversion")
        _refuse_buffer(site, target)
        if changes_view:
            # It changes what the tensor is a view of, not what is in it.
            target.extend(_replay(self, site, functional, nodes, 0))
            return target
        (value,) = result_values(converter(site))[:1]
        assert value is not None
        wanted = target.read().tensor.element
        found = value.tensor.element
        # A result may go to a wider or narrower type of its kind, a complex one to its own alone.
        fits = found is wanted or (found.kind is wanted.kind and wanted.kind.value != "complex")
        if list(written) == ["out"] and not fits:
            site.refuse(f"argument 'out' is of type {wanted}; expected {found}", "out")
        target.write(site, cast(site, value, wanted))
        return target

    def _write_statistics(self, site: Site, name: str, node_values: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """Normalization in training: the last two results of the converter are new running statistics."""
        converter = converter_for(name)
        if converter is None:
            site.refuse("it writes to running statistics, and has no conversion")
        places = [self.env.get(node_values[key]) for key in _STATISTICS]
        for place in places:
            if isinstance(place, Place):
                _refuse_buffer(site, place)
        *results, mean, variance = result_values(converter(site))
        for place, value in zip(places, (mean, variance), strict=True):
            if isinstance(place, Place) and value is not None:
                place.write(site, value)
        made = [Place.of(value) if isinstance(value, Value) else value for value in results]
        return made if isinstance(site.result, (list, tuple)) else made[0]

    def _resize(self, site: Site, functional: str, node: Any) -> Any:  # noqa: ANN401
        """A tensor that gets another size: what it holds afterwards begins as what it held."""
        place, converter = self.env[node], converter_for(functional)
        if not isinstance(place, Place) or place.steps or converter is None:
            site.refuse("it changes the size of a view")
        _refuse_buffer(site, place)
        (value,) = result_values(converter(site))
        assert value is not None
        place.storage.value = value
        place.storage.version += 1
        return place


_STATISTICS: Final = ("running_mean", "running_var")
"""Arguments that normalizations write to in training."""

_RESIZING: Final = frozenset({"resize.default", "resize_as.default"})


def _trains(site: Site, name: str) -> bool:
    """Whether a normalization writes to running statistics that its schema does not mark as written."""
    if name.partition(".")[0] not in ("batch_norm", "instance_norm", "native_batch_norm"):
        return False
    trains = site.get("training", site.get("use_input_stats", False))
    return bool(trains) and site.get("running_mean") is not None


def _refuse_buffer(site: Site, place: Place) -> None:
    if place.storage.buffer:
        site.refuse(
            f"it changes buffer '{place.storage.buffer}', and a compiled model keeps no state: pass the buffer "
            "as an input and return its new value"
        )


_VIEWS_IN_PLACE: Final = {
    "squeeze_": "", "unsqueeze_": "", "t_": "", "as_strided_": "", "detach_": "", "transpose_": "int",
    "swapaxes_": "", "swapdims_": "",
}  # fmt: skip
"""Writes that change what a tensor is a view of; the overload of the functional operator where it has another name."""


def functional_name(name: str, written: Sequence[str]) -> tuple[str, bool]:
    """The functional operator of one that writes, ``add_.Tensor`` or ``atan2.out``; whether it only changes a view."""
    base, overload = name.split(".")
    if list(written) == ["out"]:
        return f"{base}.{overload.removesuffix('out').rstrip('_') or 'default'}", False
    if base in _VIEWS_IN_PLACE:
        return f"{base.removesuffix('_')}.{_VIEWS_IN_PLACE[base] or overload}", True
    return f"{base.removesuffix('_')}.{overload}", False


def _replay(body: Body, site: Site, name: str, nodes: Mapping[str, Any], index: int) -> Callable[[Value], Value]:
    """The view operator on another value of the tensor that it views."""
    first = next(key for key, item in nodes.items() if hasattr(item, "meta") and isinstance(body.env.get(item), Place))

    def step(value: Value) -> Value:
        converter = converter_for(name)
        assert converter is not None
        # Numbers are viewed as well as data, so the type that torch saw does not matter.
        again = Site(
            site.operator, site.node, {**site.arguments, first: value}, site.fakes, site.result, body.b, body.folder
        )
        found = result_values(converter(again))[index]
        assert found is not None
        return found

    return step


def bound(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """The arguments of a call by the names of the schema, with defaults."""
    found: dict[str, Any] = {}
    for position, argument in enumerate(schema.arguments):
        if position < len(args):
            found[argument.name] = args[position]
        elif argument.name in kwargs:
            found[argument.name] = kwargs[argument.name]
        else:
            found[argument.name] = argument.default_value
    return found


def fake_of(item: Any) -> Any:  # noqa: ANN401
    """An argument as torch saw it while it traced."""
    if isinstance(item, (list, tuple)):
        return [fake_of(part) for part in item]
    if hasattr(item, "op") and hasattr(item, "meta"):
        return item.meta.get("val")
    return item


def refine(value: Value, fake: Any) -> None:  # noqa: ANN401
    """Let a result have the sizes that torch knows where inference leaves them open."""
    type_ = value.type
    if not isinstance(type_, TensorType) or not hasattr(fake, "shape"):
        return
    if type_.is_static or (value.op is not None and value.op.definition.holds_constant):
        return
    dims = [dim_from(size) for size in fake.shape]
    if type_.dims is None:
        value.type = tensor(type_.element, dims)
    elif len(dims) == len(type_.dims):
        value.type = type_.with_dims(
            [seen if own == UNKNOWN else own for own, seen in zip(type_.dims, dims, strict=True)]
        )


__all__ = ["BOOL", "F64", "I64", "Body", "converters", "element_from", "import_exported_program"]
