"""A small POSIX shell for the commands of simulated containers: `syntax.py` parses scripts into trees (`tree.py`), `interpreter.py` runs
them as generators of events (`events.py`), `expansion.py` expands words, and `programs.py` has echo, sleep and the like.

Pure: the shell touches no files and starts no processes; what it can't follow, it reports.
"""
