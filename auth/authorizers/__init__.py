"""The authorization modes, a file each. They are unaware of each other; union.py composes them."""
