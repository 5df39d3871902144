"""The only ordered list of passes, and why each stands where it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.passes.absorb_padding import AbsorbPadding
from compiler.passes.absorb_transposes import AbsorbTransposes
from compiler.passes.canonicalize import Canonicalize
from compiler.passes.common_subexpressions import CommonSubexpressions
from compiler.passes.dead_code import DeadCode
from compiler.passes.decompose import Decompose
from compiler.passes.fold import Fold
from compiler.passes.fuse_into_conv import FuseIntoConv
from compiler.passes.inline_branches import InlineBranches
from compiler.passes.manager import Instruments, Report, run_passes
from compiler.passes.recognize import Recognize
from compiler.passes.tile_attention import TileAttention

if TYPE_CHECKING:
    from compiler.ir import Graph, Op
    from compiler.passes.manager import Pass
    from compiler.rewrite import RewriteCounter
    from compiler.targets.schema import Target


def canonical_passes(*, recognize: bool = True) -> tuple[Pass, ...]:
    """What brings a graph to its canonical form, the same for every target: where composites are whole."""
    return (
        Fold(),  # first: sizes and conditions that constants decide make everything after it simpler
        InlineBranches(),  # a decided branch exposes its operations to the rules
        Canonicalize(),  # one spelling for each meaning, before anything is compared or joined
        CommonSubexpressions(),  # after canonicalization, which makes equal things look equal
        DeadCode(),  # so that no use by a dead operation stops a fusion
        *((Recognize(),) if recognize else ()),  # pieces are easiest to know before anything is fused into them
    )


def passes_for(target: Target, *, fuse: bool = True) -> tuple[Pass, ...]:
    """The passes for a target, in order. Without ``fuse`` composites are neither recognized nor executed whole."""

    def executed_whole(op: Op) -> bool:
        return fuse and op.name in target.composites

    return (
        *canonical_passes(recognize=fuse),
        # before anything is fused into its pieces: a block is an attention of its own
        *((TileAttention(target.sram.bytes),) if fuse else ()),
        AbsorbPadding(),  # a window that pads by itself saves a copy of its operand
        FuseIntoConv(),  # while batch norms are whole: their statistics go into the weights
        AbsorbTransposes(),  # a product reads its operands in any order of dims
        Decompose(executed_whole),  # composites are worth fusing whole; what is left of them is taken apart here
        Fold(),  # decompositions bring constants of their own
        Canonicalize(),  # and steps that meet those of their neighbours
        CommonSubexpressions(),  # two decompositions of the same operand share work
        DeadCode(),  # last: leaves nothing for lowering that no output needs
    )


def optimize(
    graph: Graph,
    target: Target,
    instruments: Instruments | None = None,
    counter: RewriteCounter | None = None,
    *,
    fuse: bool = True,
) -> Report:
    """Run the passes for ``target`` on ``graph``, in place. Raises what a pass raises, with its name in the message."""
    return run_passes(graph, passes_for(target, fuse=fuse), instruments, counter)
