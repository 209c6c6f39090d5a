"""Faults on demand: which requests are struck, when, and what happens to them. No client needs to know."""
