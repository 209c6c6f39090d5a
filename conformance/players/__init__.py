"""Plays scenarios and scripts: controllers, credentials, and the servers that scenarios call."""
