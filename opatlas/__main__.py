"""`python -m opatlas` is the `opatlas` command."""

from opatlas import main

main()
