"""Comparisons of what controllers do to random objects."""
