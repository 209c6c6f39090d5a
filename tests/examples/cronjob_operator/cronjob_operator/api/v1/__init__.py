"""The kinds' version v1."""
