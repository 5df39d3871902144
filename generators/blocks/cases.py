"""Cases of blocks: framework x block x configuration x element type x spelling, by id; and each one's program."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from generators.blocks import onnx, tensorflow, torch
from generators.blocks.language import Evaluator, Phrase
from generators.blocks.program import Program, Var
from generators.blocks.rendering import Framework
from generators.blocks.words import WORDS
from opsets.block_manifest import Block, TensorEntry, find_block, load_blocks, load_phrases
from opsets.errors import ManifestError

FRAMEWORKS: Final[Mapping[str, Framework]] = {
    framework.name: framework for framework in (onnx.FRAMEWORK, torch.FRAMEWORK, tensorflow.FRAMEWORK)
}
_UNTYPED: Final = frozenset({("onnx", "bfloat16", "einsum")})
"""(framework, element type, word) where the framework's own schema lacks the type."""
TIMING_TYPE: Final = "float16"
"""Element type of configurations that are there for timing."""
_PLAIN_TYPE: Final = "float32"


@dataclass(frozen=True, slots=True)
class BlockCase:
    """One case. ``spelled`` holds (phrase, spelling) for each phrase of the body; ``real``: timing only, no data.

    ``sizes`` stand for those of the configuration, where a case is none of a manifest's.
    """

    framework: str
    block: str
    config: str
    dtype: str
    spelled: tuple[tuple[str, str], ...]
    real: bool = False
    sizes: tuple[tuple[str, int], ...] = ()

    @property
    def id(self) -> str:
        """All that the case is; of phrases, those that are not in their first spelling."""
        other = [(name, kind) for name, kind in self.spelled if kind != next(iter(phrases()[name].spellings))]
        kinds = "+".join(f"{phrase}.{spelling}" for phrase, spelling in other)
        return "-".join([self.framework, self.block, self.config, self.dtype, *([kinds] if kinds else [])])

    @property
    def seed(self) -> int:
        """Seed of the draws: the same for every framework and spelling."""
        text = f"{self.block} {self.config}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def timing_case(block: str, dtype: str, **sizes: int) -> BlockCase:
    """A block at any sizes, in ONNX, its weights without data. Raises ManifestError."""
    return BlockCase("onnx", block, "any", dtype, spellings(block, "onnx")[0], real=True, sizes=tuple(sizes.items()))


def sizes_of(case: BlockCase) -> dict[str, Any]:
    """What the names of a case's configuration are. Raises ManifestError."""
    return dict(case.sizes) or _configured(find_block(case.block), case.config)


def _configured(block: Block, config: str) -> dict[str, Any]:
    found = block.entry.configs.get(config) or block.entry.real.get(config)
    if found is None:
        raise ManifestError(f"{block.source}: {block.name}: found no configuration '{config}'")
    return dict(found)


@cache
def phrases() -> Mapping[str, Phrase]:
    """Every phrase, its signature read."""
    found = {}
    for name, entry in load_phrases().items():
        arguments = ast.parse(f"def phrase({entry.signature}): pass").body[0].args  # type: ignore[attr-defined]
        names = tuple(argument.arg for argument in arguments.args)
        values = [ast.literal_eval(node) for node in arguments.defaults]
        defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))
        found[name] = Phrase(name, names, defaults, entry.spellings)
    return found


def make_program(case: BlockCase, *, wide: bool = False) -> Program:
    """The block's steps, run once from its definition; ``wide``: every float type is float64."""
    return _run(find_block(case.block), sizes_of(case), "float64" if wide else case.dtype, dict(case.spelled))[0]


def _run(
    block: Block, names: dict[str, Any], dtype: str, spelled: Mapping[str, str]
) -> tuple[Program, tuple[str, ...]]:
    program = Program()
    evaluator = Evaluator(program, dtype, phrases(), spelled)
    for group, entries in ((program.inputs, block.entry.inputs), (program.weights, block.entry.weights)):
        for name, entry in entries.items():
            group[name] = Var(shape_of(evaluator, entry, names), dtype if entry.type == "T" else entry.type, name)
    try:
        found = evaluator.run(block.entry.body, {**names, **program.inputs, **program.weights})
    except ManifestError as error:
        raise ManifestError(f"{block.source}: {block.name}, {names}: {error}") from error
    program.outputs = found if isinstance(found, tuple) else (found,)
    return program, tuple(evaluator.used)


def shape_of(evaluator: Evaluator, entry: TensorEntry, names: dict[str, Any]) -> tuple[int, ...]:
    """Sizes of an entry as numbers."""
    return tuple(int(number_of(evaluator, size, names)) for size in entry.shape)


def number_of(evaluator: Evaluator, value: float | str, names: dict[str, Any]) -> Any:  # noqa: ANN401
    """A number, or an expression over the names of a configuration."""
    return evaluator.value(ast.parse(value, mode="eval").body, names) if isinstance(value, str) else value


@cache
def phrases_of(block: str) -> tuple[str, ...]:
    """Phrases with several spellings that a block's body meets, in whatever spelling of the others."""
    entry = find_block(block)
    config = dict(next(iter({**entry.entry.configs, **entry.entry.real}.values())))
    found: dict[str, None] = dict.fromkeys(_run(entry, config, _PLAIN_TYPE, {})[1])
    pending = list(found)
    while pending:
        phrase = pending.pop(0)
        for spelling in phrases()[phrase].spellings:
            met = _run(entry, config, _PLAIN_TYPE, {phrase: spelling})[1]
            pending += [name for name in met if name not in found]
            found |= dict.fromkeys(met)
    return tuple(name for name in found if len(phrases()[name].spellings) > 1)


@cache
def spellings(block: str, framework: str) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The spellings of a block to try: the n-th takes the n-th spelling of each phrase, begun again at the end."""
    table = FRAMEWORKS[framework]
    chosen = {
        phrase: [name for name in phrases()[phrase].spellings if _words_of(phrase, name) <= table.words.keys()]
        for phrase in phrases_of(block)
    }
    count = max((len(names) for names in chosen.values()), default=1)
    rows = [tuple((phrase, names[i % len(names)]) for phrase, names in chosen.items()) for i in range(count)]
    return tuple(dict.fromkeys(rows))


@cache
def _words_of(phrase: str, spelling: str) -> frozenset[str]:
    """Words that a spelling itself names."""
    nodes = [node for part in ast.parse(phrases()[phrase].spellings[spelling]).body for node in ast.walk(part)]
    return frozenset(WORDS) & frozenset(ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call))


def _lacks_type(block: Block, framework: str, dtype: str, spelled: tuple[tuple[str, str], ...]) -> bool:
    bodies = [block.entry.body, *(phrases()[phrase].spellings[spelling] for phrase, spelling in spelled)]
    return any(
        (framework, dtype) == (name, element) and any(f"{word}(" in body for body in bodies)
        for name, element, word in _UNTYPED
    )


def expand_blocks() -> Iterator[BlockCase]:
    """Every case in order: all spellings in float32, one of them in turn in each narrower type; real sizes last."""
    for block in load_blocks():
        for framework in block.entry.frameworks:
            rows = spellings(block.name, framework)
            for place, config in enumerate(block.entry.configs):
                for turn, dtype in enumerate(block.entry.dtypes):
                    typed = [row for row in rows if not _lacks_type(block, framework, dtype, row)]
                    kept = typed if dtype == _PLAIN_TYPE or not typed else [typed[(place + turn) % len(typed)]]
                    for spelled in kept:
                        yield BlockCase(framework, block.name, config, dtype, spelled)
        for config in block.entry.real:
            yield BlockCase("onnx", block.name, config, TIMING_TYPE, spellings(block.name, "onnx")[0], real=True)
