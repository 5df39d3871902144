"""Layers that choose samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.frontends.caffe.site import Site, converts
from compiler.ir import I64, Value
from compiler.ops.compare import Ne
from compiler.ops.convert import Cast
from compiler.ops.indexing import Gather
from compiler.ops.selection import Compress


@converts("Filter", least=2, greatest=None)
def filter_(site: Site) -> Sequence[Value]:
    """The samples of each bottom but the last whose entry in the last, the selector, is not 0."""
    samples = site.dims(0)[0]
    selector = site.dims(len(site.inputs) - 1)
    if selector[0] != samples or int(np.prod(selector, dtype=np.int64)) != samples:
        site.invalid(
            f"the selector, the last bottom, has shape {list(selector)}; expected one value a sample: {samples}"
        )
    chosen = site.b(Ne, site.reshape(site.inputs[-1], (samples,)), site.number(0))
    for index in range(1, len(site.inputs) - 1):
        if site.dims(index)[0] != samples:
            site.invalid(f"bottom {index} has {site.dims(index)[0]} samples; expected {samples}")
    return [site.b(Compress, value, chosen, axis=0) for value in site.inputs[:-1]]


@converts("BatchReindex", least=2, greatest=2)
def batch_reindex(site: Site) -> Value:
    """The samples of bottom 0 that bottom 1 names, in its order."""
    if len(site.dims(1)) != 1:
        site.invalid(f"bottom 1 has shape {list(site.dims(1))}; expected one dim of indices")
    return site.b(Gather, site.inputs[0], site.b(Cast, site.inputs[1], to=I64), axis=0)
