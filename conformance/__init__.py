"""Compares this server with real ones. Imports nothing of the package."""
