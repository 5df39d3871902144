"""The conformance suites: pytest over generated cases, independent oracles, computed tolerances, expectations.

Run from a clone (``pytest -n auto conformance/``); it is no part of the wheel. Where to find what:

=====================  ======================================================================================
conftest.py            the hooks into pytest; options.py: the options of the command line
collection.py          which cases are tried: pytest collectors and items, selection by option
suites/                where cases come from: manifests, ONNX's own tests, whole models, invalid models
isolation.py           runs cases in a process that may be lost (case_process.py): a crash costs one case
judge.py               one case from model to record, inside the child
oracles.py             independent references and their runs in float64
vote.py                what the oracles say together
tolerance.py           the tolerance classes; tolerance_names.py: how manifests write them
comparison.py          outputs against a reference, in one class
numerics.py            formats of numbers: mantissa, limits, units in the last place
widening.py            an ONNX model with every float type made wider
expectations.py        what is known to be red, and why; rewrite_expectations.py writes it from a run
backends/              the compilers under test
kill_rate.py           how much damage to outputs the classes see
=====================  ======================================================================================
"""
