"""Random flags and files that a server is started with, most of them wrong."""
