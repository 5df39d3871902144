"""Blocks of models: one definition each (opsets/blocks), rendered to readable source of every framework."""

from generators.blocks.build import BuiltBlock, block_source, build_block, render_block
from generators.blocks.cases import BlockCase, expand_blocks, make_program, timing_case

__all__ = [
    "BlockCase",
    "BuiltBlock",
    "block_source",
    "build_block",
    "expand_blocks",
    "make_program",
    "render_block",
    "timing_case",
]
