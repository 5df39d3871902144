"""What things cost. Each module is a command, `python -m benchmarks.NAME`: it prints a table and writes JSON."""
