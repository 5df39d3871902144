"""What has no conversion of its own: torch's decomposition of that one node, traced and converted in its place."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from compiler.errors import OpatlasError
from compiler.frontends.torch.memory import Place
from compiler.ir import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.frontends.torch.importer import Body
    from compiler.frontends.torch.site import Site

_DEEPEST = 4


def decomposed(body: Body, site: Site, node: Any) -> list[Any] | None:  # noqa: ANN401 - an fx.Node
    """The results of a node by torch's decomposition; None where there is none or it cannot be traced."""
    if body.source.count(">") >= _DEEPEST:
        return None
    traced = _traced(node)
    if traced is None:
        return None
    from compiler.frontends.torch.importer import Body as Inner

    module, leaves = traced
    inner = Inner(body.b, body.folder, f"{body.source}>{site.node}")
    placeholders = [item for item in module.graph.nodes if item.op == "placeholder"]
    for item, leaf in zip(placeholders, leaves, strict=True):
        value = body.argument(leaf)
        inner.env[item] = (
            Place.of(value) if isinstance(value, Value) and hasattr(leaf.meta.get("val"), "shape") else value
        )
    inner.run(module, module.graph.nodes)
    output = next(item for item in module.graph.nodes if item.op == "output").args[0]
    if isinstance(output, (list, tuple)):
        return [inner.value(item) for item in output]
    result = inner.value(output)
    return result if isinstance(result, list) else [result]


def _traced(node: Any) -> tuple[Any, list[Any]] | None:  # noqa: ANN401
    import torch
    from torch._decomp import decomposition_table
    from torch.utils import _pytree as pytree

    target = node.target
    # torch's own composition gives ATen operators; the table may go down to primitives.
    composed = target.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)  # noqa: SLF001
    ways = [target.decompose] if composed else []
    ways += [decomposition_table[target]] if target in decomposition_table else []
    leaves, spec = pytree.tree_flatten(
        (node.args, dict(node.kwargs)), is_leaf=lambda item: isinstance(item, torch.fx.Node)
    )
    nodes = [leaf for leaf in leaves if isinstance(leaf, torch.fx.Node)]

    fakes = [leaf.meta["val"] for leaf in nodes]
    for way in ways:

        def call(*values: Any, way: Any = way) -> Any:  # noqa: ANN401
            given = iter(values)
            args, kwargs = pytree.tree_unflatten(
                [next(given) if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves], spec
            )
            return way(*args, **kwargs)

        module = _trace(call, fakes)
        if module is not None:
            return module, nodes
    return None


def _trace(call: Callable[..., Any], fakes: list[Any]) -> Any:  # noqa: ANN401
    """A function of fake tensors as a module of operators, or None where it cannot be traced."""
    from torch.fx.experimental.proxy_tensor import make_fx

    mode = next((fake.fake_mode for fake in fakes if hasattr(fake, "fake_mode")), None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if mode is None:
                return make_fx(call, tracing_mode="fake")(*fakes)
            with mode:
                return make_fx(call)(*fakes)
    except OpatlasError:
        raise
    except Exception:  # noqa: BLE001 - a decomposition that cannot be traced is as good as none; the caller refuses by name
        return None
