"""Tests of attention by blocks of queries: the same values, and hardly more traffic than its operands and result."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from compiler import api

HEADER = '<ir_version: 11, opset_import: ["": 23]>'


def compiled(q, k, *, attributes="", mask="", fuse=True):
    shape = [", ".join(map(str, one)) for one in (q, k)]
    inputs = f"float16[{shape[0]}] q, float16[{shape[1]}] k, float16[{shape[1]}] v{mask and f', {mask} m'}"
    text = f"{HEADER} g ({inputs}) => (float16[{shape[0]}] y) {{ y = Attention{attributes}(q, k, v{mask and ', m'}) }}"
    return api.compile(onnx.parser.parse_model(text), options=api.Options(fuse=fuse))


@pytest.mark.parametrize("size", [(2, 512, 64), (1, 1024, 64), (1, 1000, 48)])
def test_scores_stay_in_sram_where_keys_and_values_fit(size):
    heads, length, width = size
    model = compiled((1, heads, length, width), (1, heads, length, width))
    result = model.estimate()
    assert result.compulsory_bytes == 4 * heads * length * width * 2
    assert result.traffic_bytes <= 1.2 * result.compulsory_bytes
    plain = compiled((1, heads, length, width), (1, heads, length, width), fuse=False).estimate()
    assert plain.traffic_bytes > 10 * result.traffic_bytes
    assert plain.cycles > result.cycles


def draw(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize(
    ("attributes", "mask"),
    [
        ("", ""),
        ("<is_causal=1>", ""),
        ("<is_causal=1, scale=0.3, softcap=4.0>", ""),
        ("", "float16[256, 256]"),
        ("", "bool[2, 4, 256, 256]"),
        ("", "float16[2, 1, 256, 256]"),
    ],
)
def test_blocks_change_no_number(attributes, mask):
    q, k = (2, 4, 256, 16), (2, 2, 256, 16)
    inputs = [draw(q, 0), draw(k, 1), draw(k, 2)]
    if mask:
        shape = [int(size) for size in mask.partition("[")[2].rstrip("]").split(",")]
        inputs.append(draw(shape, 3) > -1 if mask.startswith("bool") else draw(shape, 3))
    fused = compiled(q, k, attributes=attributes, mask=mask)
    found = fused.simulate(inputs)
    apart = compiled(q, k, attributes=attributes, mask=mask, fuse=False).simulate(inputs)
    assert found.traffic_bytes < 0.5 * apart.traffic_bytes
    np.testing.assert_allclose(found.outputs[0].astype(float), apart.outputs[0].astype(float), atol=4e-3)
