"""What the commands of `opatlas` do; `opatlas.py` reads their options and prints."""
