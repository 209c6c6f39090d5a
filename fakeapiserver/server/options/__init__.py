"""Flags and configuration files, and the authenticators, authorizers and the admission chain that they configure."""
