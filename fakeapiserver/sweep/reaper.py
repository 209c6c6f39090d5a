"""A process that ends others when its parent is gone, however that ended: nothing is left running.

Its standard input has a line for each process group: `+PID` when it begins, `-PID` when it has ended. At the end of input all that are
left are killed. It imports nothing of this package, since it is started for every sweep.
"""

import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Reads until the parent closes the pipe, or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        number = int(line[1:])
        if line.startswith("+"):
            groups.add(number)
        else:
            groups.discard(number)
    for number in groups:
        with suppress(ProcessLookupError):
            os.killpg(number, signal.SIGKILL)


if __name__ == "__main__":
    main()
