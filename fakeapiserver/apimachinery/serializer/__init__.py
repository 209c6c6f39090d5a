"""Bytes to objects and back."""
