"""One authorization mode a file; they are unaware of each other (union.py composes them)."""
