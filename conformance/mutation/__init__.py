"""Does the suite see a fault? Known faults are put into the compiler and the comparator, one at a time.

``python -m conformance.mutation`` tries 30 hand-written faults and 200 generated ones, and reports which of them turned
a case red, which only a unit test saw, and which nothing saw. No file is changed: a child process imports the faulty
source in place of the module, or gets the faulty functions in place of the right ones. Where to find what:

===================  ===========================================================================================
edits.py             a fault: edits of one module's source; what they look like as a diff
sites.py             the kinds of generated faults, and where a module has a place for them
generated.py         which 200 of them are taken: seeded, with a share for each package
handwritten.yaml     faults that a compiler engineer makes; handwritten.py reads them
equivalent.yaml      generated faults that change no result, each with the reason
importing.py         puts a fault into a process
pool.py              every green case with its oracles' answers and the lines it runs; recording.py records it once
judging.py           judges a case of the pool again
selection.py         which cases can see a fault: those that run its lines
damages.py           what is done to right results, to see the comparator object
trial.py             one fault, in a child process: the cases, then the unit tests beside the module
children.py          forks, limits and collects children
report.py            records, the table and the rates
precision.py         can every float operator and type see an error of a few bits?
===================  ===========================================================================================
"""
