"""Volumes and claims: which suit each other, which pods use them, what protects them."""
