"""The authenticators, a file each. They are unaware of each other; union.py composes them."""
