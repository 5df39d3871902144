"""Rules that make composites of their exported pieces, by family."""
