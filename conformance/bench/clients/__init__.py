"""This package's client beside Go's, on the same server."""
