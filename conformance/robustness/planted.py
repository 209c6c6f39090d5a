"""Bugs that are planted in a server, to show that the checks find them: `python -m conformance.robustness.planted BUG serve …`."""

import sys

from conformance.robustness import planted_etcd, planted_file, planted_watches
from conformance.robustness.bug import BUGS, Bug
from fakeapiserver import cli

# Each of them adds its bugs to BUGS.
MODULES = (planted_watches, planted_file, planted_etcd)
__all__ = ["BUGS", "Bug"]

if __name__ == "__main__":
    BUGS[sys.argv[1]].plant()
    sys.exit(cli.main(sys.argv[2:]))
