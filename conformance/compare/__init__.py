"""Runs of random requests at a real server and another one, which print each kind of difference once."""
