import ml_dtypes
import numpy as np
import pytest
import torch
from onnx.reference.ops.op_attention import _compute_attention
from onnx.reference.ops.op_rotary_embedding import rotary_embedding

from compiler.errors import TypeMismatch
from compiler.ops.harness_test import run, run_decomposed

RNG = np.random.default_rng(37)
WAYS = pytest.mark.parametrize("way", [run, run_decomposed])
B, H, S, L, D, E = 2, 4, 3, 5, 6, 7


def normal(*shape, dtype=np.float64):
    return RNG.standard_normal(shape).astype(dtype)


def operands(groups=H):
    return normal(B, H, S, D), normal(B, groups, L, D), normal(B, groups, L, E)


def agree(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


MASKS = [None, (S, L), (B, 1, S, L), (H, S, L), (B, H, 1, L)]


@WAYS
@pytest.mark.parametrize("groups", [H, 2, 1])
@pytest.mark.parametrize("mask", MASKS)
def test_float_masks_and_grouped_heads_are_torchs(way, groups, mask):
    q, k, v = operands(groups)
    bias = None if mask is None else normal(*mask)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.tensor, (q, k, v)), attn_mask=None if bias is None else torch.tensor(bias), enable_gqa=True
    ).numpy()
    agree(way("attention", q, k, v, bias), expected)


def onnx_reference(q, k, v, mask=None, lengths=None, past=0, **attributes):
    """ONNX's reference, the first ``past`` keys given as a cache."""
    caches = {} if not past else {"past_key": k[:, :, :past], "past_value": v[:, :, :past]}
    found = _compute_attention(
        q, k[:, :, past:], v[:, :, past:], mask, nonpad_kv_seqlen=lengths, **caches, **attributes
    )
    return found[0], found[3]


@WAYS
@pytest.mark.parametrize("past", [0, 2])
@pytest.mark.parametrize(("left", "right"), [(-1, -1), (1, -1), (0, 1)])
@pytest.mark.parametrize("causal", [False, True])
def test_causal_masks_windows_and_caches_follow_onnx(way, causal, left, right, past):
    q, k, v = operands()
    mask = RNG.random((B, 1, S, L)) < 0.7
    expected, _ = onnx_reference(
        q, k, v, mask, past=past, is_causal=causal, left_window_size=left, right_window_size=right,
        softcap=0.0, qk_matmul_output_mode=0,
    )  # fmt: skip
    offset = np.array(past, np.int64) if past else None
    found = way("attention", q, k, v, mask, None, offset, causal=causal, left_window=left, right_window=right)
    agree(found, expected)


@WAYS
@pytest.mark.parametrize("causal", [False, True])
def test_lengths_hide_padding_and_rows_that_see_nothing_are_zero(way, causal):
    q, k, v = operands()
    lengths = np.array([5, 1], np.int64)
    expected, _ = onnx_reference(q, k, v, None, lengths, is_causal=causal, softcap=0.0, qk_matmul_output_mode=0)
    found = way("attention", q, k, v, None, lengths, lengths - S if causal else None, causal=causal)
    agree(found, expected)
    assert np.any(found[1])
    assert not causal or not np.any(found[1, :, :2])


@WAYS
def test_raw_scores_are_before_the_softcap(way):
    # As the specification says; ONNX's reference gives the capped ones in mode 0.
    q, k, v = operands()
    _, raw = way("attention", q, k, v, softcap=2.0, scale=0.3, scores="raw")
    agree(raw, 0.3 * (q @ k.swapaxes(2, 3)))


@WAYS
@pytest.mark.parametrize(("stage", "mode"), [("capped", 1), ("biased", 2), ("weights", 3)])
def test_scores_follow_onnx_with_softcap(way, stage, mode):
    q, k, v = operands()
    bias = normal(S, L)
    bias[1] = -np.inf
    expected = onnx_reference(q, k, v, bias, softcap=2.0, scale=0.3, qk_matmul_output_mode=mode)
    found = way("attention", q, k, v, bias, softcap=2.0, scale=0.3, scores=stage)
    for one, other in zip(found, expected, strict=True):
        agree(one, other)


@WAYS
@pytest.mark.parametrize("kind", [np.bool_, np.float64])
def test_a_mask_of_fewer_keys_hides_the_rest(way, kind):
    q, k, v = operands()
    short = np.zeros((S, 3)) if kind is np.float64 else np.ones((S, 3), np.bool_)
    agree(way("attention", q, k, v, short), run("attention", q, k[:, :, :3], v[:, :, :3]))


@WAYS
def test_bfloat16_rounds_weights_and_result_alone(way):
    q, k, v = (array.astype(ml_dtypes.bfloat16) for array in operands())
    exact = run("attention", *(array.astype(np.float64) for array in (q, k, v)))
    found = way("attention", q, k, v).astype(np.float64)
    # The result's own rounding, and that of each weight.
    assert np.all(
        np.abs(found - exact) <= 2.0**-8 * (np.abs(exact) + np.abs(v.astype(np.float64)).max(2, keepdims=True))
    )


def test_heads_must_divide():
    with pytest.raises(TypeMismatch, match="G dividing H"):
        run("attention", *operands(3))


@WAYS
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dim", [0, 4])
@pytest.mark.parametrize("tables", [False, True])
def test_rotary_follows_onnx(way, interleaved, dim, tables):
    x, half = normal(B, H, S, D), (dim or D) // 2
    positions = RNG.integers(0, 9, (B, S)) if tables else None
    cos, sin = (normal(9, half) if tables else normal(B, S, half) for _ in range(2))
    expected = rotary_embedding(x, cos, sin, positions, interleaved=interleaved, rotary_embedding_dim=dim)
    agree(way("rotary", x, cos, sin, positions, interleaved=interleaved, dim=dim), expected)


def test_angles_must_fit():
    with pytest.raises(TypeMismatch, match="expected a last dim of 3"):
        run("rotary", normal(1, 1, 2, 6), normal(1, 2, 2), normal(1, 2, 2))
