"""Compares the effects of controllers on random objects."""
