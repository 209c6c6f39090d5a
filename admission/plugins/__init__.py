"""One admission plugin a file, named as upstream in lower case; they are unaware of each other (chain.py composes them)."""
