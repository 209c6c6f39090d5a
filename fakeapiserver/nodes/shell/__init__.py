"""A small POSIX shell for the commands of simulated containers: `syntax.py` parses, `interpreter.py` runs, `programs.py` has echo, sleep
and the like. Pure: it touches no files and starts no processes; what it can't follow, it reports.
"""
