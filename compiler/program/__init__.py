"""The contract between lowering and the simulator: instruction set, executable tree, text form, static verifier."""

from compiler.program.executable_parser import load_executable, parse_executable, save_executable
from compiler.program.parser import parse_program
from compiler.program.printer import (
    constant_bytes,
    constant_data,
    constant_key,
    print_executable,
    print_instruction,
    print_program,
)
from compiler.program.verifier import verify_executable, verify_program

__all__ = [
    "constant_bytes",
    "constant_data",
    "constant_key",
    "load_executable",
    "parse_executable",
    "parse_program",
    "print_executable",
    "print_instruction",
    "print_program",
    "save_executable",
    "verify_executable",
    "verify_program",
]
