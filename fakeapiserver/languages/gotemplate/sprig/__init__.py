"""Sprig's functions, a module for each of Sprig's groups; `functions.py` has the table of their names in templates.

Upstream: github.com/Masterminds/sprig/v3.
"""
