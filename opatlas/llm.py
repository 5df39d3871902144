"""What a decoder costs at its real size: prefill and decoding on a target, without a weight's data.

Each block is compiled once and counted as often as the model has it: layers are alike. Boundaries of blocks go through
DRAM. Decoding is timed at the middle of what is generated, with so many keys behind each token.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from compiler.program.instructions import Engine
from opatlas.work import BadOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.api import SimulationResult
    from compiler.targets import Target
    from opsets.decoders import Decoder

BYTES: Final = {"float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of the model: prompts of ``prompt`` tokens, ``batch`` at once, ``generate`` tokens after each."""

    prompt: int
    generate: int
    batch: int = 1
    dtype: str = "bfloat16"

    def __post_init__(self) -> None:
        if self.dtype not in BYTES:
            raise BadOption(f"--dtype: found {self.dtype!r}, expected one of {', '.join(BYTES)}")
        if min(self.prompt, self.generate, self.batch) < 1:
            raise BadOption("--prompt, --generate and --batch: expected 1 at least")


@dataclass(frozen=True, slots=True)
class Part:
    """One block of a phase: its cost once, and how often the phase runs it."""

    name: str
    count: int
    result: SimulationResult

    @property
    def seconds(self) -> float:
        """Of all runs."""
        return self.count * self.result.seconds

    @property
    def energy_pj(self) -> float:
        """Of all runs."""
        return self.count * self.result.energy_pj

    @property
    def traffic_bytes(self) -> int:
        """Of all runs."""
        return self.count * self.result.traffic_bytes

    @property
    def bound(self) -> str:
        """The busiest engine: compute (matrix), vector, bandwidth, or host where that takes most of the time."""
        shares = self.result.utilization
        host = sum(step.cycles for step in self.result.report.host)
        if 2 * host > self.result.cycles:
            return "host"
        work = {
            "compute": shares.get(str(Engine.MATRIX.value), 0.0),
            "vector": shares.get(str(Engine.VECTOR.value), 0.0),
            "bandwidth": max(shares.get(str(e.value), 0.0) for e in (Engine.DMA_IN, Engine.DMA_OUT)),
        }
        return max(work, key=lambda name: work[name])


def study(decoder: Decoder, load: Load, target: Target, name: str) -> dict[str, Any]:
    """Time the blocks of both phases and add them up, as plain data: seconds, bytes, joules.

    Raises an OpatlasError where a block can't be compiled, ManifestError where sizes do not fit each other.
    """
    middle = load.prompt + load.generate // 2
    timer = _Timer(decoder, load, target)
    prefill = timer.parts(load.prompt, None)
    step = timer.parts(1, middle)
    size = BYTES[load.dtype]
    weights = decoder.weights * size
    cache = load.batch * decoder.cache(load.prompt + load.generate) * size
    # The table of tokens is read row by row: it is no part of what a step must read.
    must_read = weights - decoder.vocabulary * decoder.width * size + load.batch * decoder.cache(middle) * size
    first, each = _seconds(prefill), _seconds(step)
    bandwidth = target.dram.bytes_per_cycle * target.frequency_hz
    return {
        "model": name,
        "decoder": decoder.model_dump(),
        "target": target.name,
        "load": {"prompt": load.prompt, "generate": load.generate, "batch": load.batch, "dtype": load.dtype},
        "time_to_first_token_seconds": first,
        "seconds_per_token": each,
        "tokens_per_second": load.batch / each,
        "seconds": first + (load.generate - 1) * each,
        "energy_per_token_joules": sum(part.energy_pj for part in step) * 1e-12 / load.batch,
        "energy_of_prompt_joules": sum(part.energy_pj for part in prefill) * 1e-12,
        "weight_bytes": weights,
        "kv_cache_bytes": cache,
        "fits_dram": weights + cache <= target.dram.bytes,
        "decode_least_bytes": must_read,
        "decode_least_seconds": must_read / bandwidth,
        "prefill": _phase(prefill),
        "decode": _phase(step),
    }


def _seconds(parts: Sequence[Part]) -> float:
    return sum(part.seconds for part in parts)


@dataclass(frozen=True, slots=True)
class _Timer:
    """Compiles a block at the sizes of a decoder and estimates it."""

    decoder: Decoder
    load: Load
    target: Target

    def parts(self, tokens: int, past: int | None) -> list[Part]:
        """The blocks of a pass over so many tokens a sequence, with ``past`` keys in the cache, or none yet."""
        d, b = self.decoder, self.load.batch
        heads = {"B": b, "D": d.width, "H": d.heads, "G": d.groups, "E": d.head}
        attention = (
            self._prefill_attention(tokens, heads)
            if past is None
            else [Part("attention", d.layers, self._time("decoder_attention_step", P=past, **heads))]
        )
        return [
            Part("embedding", 1, self._time("token_embedding", B=b, S=tokens, V=d.vocabulary, D=d.width)),
            *attention,
            Part("mlp", d.layers, self._time("decoder_mlp", B=b, S=tokens, D=d.width, F=d.inner)),
            Part("head", 1, self._time("lm_head", B=b, S=1, D=d.width, V=d.vocabulary)),
        ]

    def _prefill_attention(self, tokens: int, heads: dict[str, int]) -> list[Part]:
        """Attention group by group: each group of heads that shares keys is alike, and runs by itself."""
        d = self.decoder
        if d.heads % d.groups:
            raise BadOption(f"{d.heads} heads in {d.groups} groups: expected a multiple")
        group = self._time("decoder_attention_group", N=d.heads // d.groups, S=tokens, E=d.head)
        return [
            Part("projections", d.layers, self._time("decoder_projections", S=tokens, **heads)),
            Part("attention", d.layers * d.groups * self.load.batch, group),
            Part("output", d.layers, self._time("decoder_output", S=tokens, **_without(heads, "G"))),
        ]

    def _time(self, block: str, **sizes: int) -> SimulationResult:
        from compiler import api
        from generators.blocks import build_block, timing_case

        model = build_block(timing_case(block, self.load.dtype, **sizes)).model
        return api.compile(model, target=self.target).estimate()


def _without(names: dict[str, int], name: str) -> dict[str, int]:
    return {key: value for key, value in names.items() if key != name}


def _phase(parts: Sequence[Part]) -> dict[str, Any]:
    total = _seconds(parts)
    return {
        "seconds": total,
        "traffic_bytes": sum(part.traffic_bytes for part in parts),
        "energy_joules": sum(part.energy_pj for part in parts) * 1e-12,
        "bound": max(parts, key=lambda part: part.seconds).bound,
        "blocks": [_block(part, total) for part in parts],
        "operators": _operators(parts, total),
    }


def _block(part: Part, total: float) -> dict[str, Any]:
    return {
        "block": part.name,
        "count": part.count,
        "seconds": part.seconds,
        "share": part.seconds / total,
        "traffic_bytes": part.traffic_bytes,
        "compulsory_bytes": part.count * part.result.compulsory_bytes,
        "energy_joules": part.energy_pj * 1e-12,
        "bound": part.bound,
        "host_operators": sorted({f"{one.operator}: {one.reason}" for one in part.result.host_operators}),
    }


def _operators(parts: Sequence[Part], total: float) -> list[dict[str, Any]]:
    """Kernels by the operators that they join, the costliest first."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    bounds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for part in parts:
        frequency = part.result.report.target.frequency_hz
        for kernel in part.result.report.kernels:
            operators = f"{part.name}: {', '.join(kernel.kernel.operators)}"
            seconds = part.count * kernel.cycles / frequency
            found[operators]["seconds"] += seconds
            found[operators]["macs"] += part.count * kernel.macs
            found[operators]["traffic_bytes"] += part.count * (kernel.read_bytes + kernel.written_bytes)
            bounds[operators][kernel.bound.value] += seconds
        for step in part.result.report.host:
            found[f"{part.name}: {step.operator} (host)"]["seconds"] += part.count * step.cycles / frequency
            bounds[f"{part.name}: {step.operator} (host)"]["host"] += 1
    rows = [
        {
            "operators": operators,
            "seconds": row["seconds"],
            "share": row["seconds"] / total,
            "macs": int(row["macs"]),
            "traffic_bytes": int(row["traffic_bytes"]),
            "bound": max(bounds[operators], key=lambda bound: bounds[operators][bound]),
        }
        for operators, row in found.items()
    ]
    return sorted(rows, key=lambda row: -row["seconds"])
