"""Passes over graphs, one a file, and their manager."""
