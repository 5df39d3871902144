"""The contract between lowering and the simulator: instruction set, executable tree, text form, static verifier."""
