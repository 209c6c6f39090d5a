"""Schemas compiled to closures: decode, prune, default, validate."""
