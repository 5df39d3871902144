"""The simulated accelerator: executes programs on data and in time."""

from compiler.simulator.costs import COMPONENTS, Costs
from compiler.simulator.machine import Machine, execute, simulate
from compiler.simulator.options import SimulationOptions
from compiler.simulator.report import Bound, HostReport, KernelReport, ProgramReport, SimulationReport
from compiler.simulator.trace import trace_json

__all__ = [
    "COMPONENTS",
    "Bound",
    "Costs",
    "HostReport",
    "KernelReport",
    "Machine",
    "ProgramReport",
    "SimulationOptions",
    "SimulationReport",
    "execute",
    "simulate",
    "trace_json",
]
