"""Prints the seconds that starting a Cluster() takes, in a process that has started some before: `… REPEATS`."""

import json
import sys
import time
from typing import Final

from fakeapiserver import Cluster

_WARM_UPS: Final = 3


def main(repeats: int) -> None:
    seconds = []
    for _ in range(repeats + _WARM_UPS):
        started = time.perf_counter()
        cluster = Cluster().start()
        seconds.append(time.perf_counter() - started)
        cluster.stop()
    print(json.dumps(seconds[_WARM_UPS:]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
