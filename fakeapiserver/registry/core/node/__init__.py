"""Nodes, and the rules for selecting them."""
