"""Tests of the performance view of a decoder: sums of its blocks, closed forms of bytes, refusals."""

from __future__ import annotations

import json

import pytest

from compiler.targets import load_target
from opatlas import main
from opatlas.llm import Load, study
from opsets.decoders import Decoder, load_decoder
from opsets.errors import ManifestError

SMALL = Decoder(layers=3, width=64, heads=4, groups=2, head=16, inner=96, vocabulary=100)


@pytest.fixture(scope="module")
def small():
    return study(SMALL, Load(prompt=8, generate=4, dtype="float16"), load_target("reference-npu"), "small")


def test_parameters_of_a_published_model_are_what_its_authors_say():
    assert load_decoder("llama-2-7b").weights == pytest.approx(6.74e9, rel=2e-3)
    assert load_decoder("llama-3-8b").weights == pytest.approx(8.03e9, rel=2e-3)
    assert load_decoder("mistral-7b").weights == pytest.approx(7.24e9, rel=2e-3)


def test_totals_are_sums_of_blocks_times_their_count(small):
    for phase, total in (("prefill", "time_to_first_token_seconds"), ("decode", "seconds_per_token")):
        blocks = small[phase]["blocks"]
        assert sum(one["seconds"] for one in blocks) == pytest.approx(small[total])
        assert sum(one["share"] for one in blocks) == pytest.approx(1)
        assert {one["block"]: one["count"] for one in blocks}["mlp"] == SMALL.layers


def test_operators_take_the_time_of_their_blocks(small):
    for phase in ("prefill", "decode"):
        seconds = sum(one["seconds"] for one in small[phase]["operators"])
        assert seconds == pytest.approx(small[phase]["seconds"], rel=0.05)


def test_the_cache_has_a_key_and_a_value_for_each_layer_group_and_token(small):
    assert small["kv_cache_bytes"] == 2 * 2 * SMALL.layers * SMALL.groups * SMALL.head * (8 + 4)


def test_a_step_reads_all_weights_and_the_cache_once(small):
    assert small["decode"]["traffic_bytes"] >= small["decode_least_bytes"]
    assert small["decode"]["traffic_bytes"] < 1.2 * small["decode_least_bytes"]


@pytest.mark.slow
def test_decoding_at_a_real_width_takes_bytes_over_bandwidth():
    one_layer = load_decoder("llama-2-7b").model_copy(update={"layers": 1, "vocabulary": 1000})
    data = study(one_layer, Load(prompt=64, generate=2048, dtype="float16"), load_target("reference-npu"), "one layer")
    assert data["decode"]["bound"] == "bandwidth"
    assert data["seconds_per_token"] == pytest.approx(data["decode_least_seconds"], rel=0.1)


def test_the_command_prints_the_same_as_data(capsys, tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(json.dumps(SMALL.model_dump()))
    with pytest.raises(SystemExit) as left:
        main(["llm", str(path), "--prompt", "8", "--generate", "4", "--dtype", "float16", "--json"])
    assert left.value.code == 0
    assert json.loads(capsys.readouterr().out)["tokens_per_second"] > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["llm", "nothing"], "decoder 'nothing' is unknown"),
        (["llm", "llama-2-7b", "--dtype", "int8"], "--dtype: found 'int8'"),
        (["llm", "llama-2-7b", "--prompt", "0"], "expected 1 at least"),
    ],
)
def test_what_can_not_be_timed_is_said_in_one_line(arguments, said, capsys):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_decoder_file_with_a_wrong_key_is_refused(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("{layers: 2, width: 0}")
    with pytest.raises(ManifestError, match="width"):
        load_decoder(str(path))
