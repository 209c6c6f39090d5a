"""The functions that every query has: `functions.py` has the table of those of values, `generators.py` of those of filters."""
