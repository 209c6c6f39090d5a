"""The kinds' version v2."""
