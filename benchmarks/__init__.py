"""What things cost. Each module is a command, `python -m benchmarks.NAME`: it prints a table and writes JSON."""

import os

# Before numpy is imported: all figures are those of one thread, as onnxruntime's are.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
