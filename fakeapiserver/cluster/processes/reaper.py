"""A process that cleans up when its parent is gone, however that ended: nothing is left running.

Its standard input has a line for each process group: `+PID` when it begins, `-PID` when it has ended, and for each folder `+/PATH` and
`-/PATH`. At the end of input all groups that are left are killed, and the folders removed. It imports nothing of this package, since it
is started for every sweep.
"""

import os
import shutil
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Reads until the parent closes the pipe or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    left: set[str] = set()
    for line in sys.stdin:
        subject = line[1:].rstrip("\n")
        if line.startswith("+"):
            left.add(subject)
        else:
            left.discard(subject)
    folders = {subject for subject in left if subject.startswith("/")}
    for group in left - folders:
        with suppress(ProcessLookupError):
            os.killpg(int(group), signal.SIGKILL)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
