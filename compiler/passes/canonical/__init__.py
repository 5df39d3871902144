"""Canonicalization rules, all exact, by family."""
