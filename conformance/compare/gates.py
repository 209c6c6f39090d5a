"""Objects with the fields of feature gates beside a real server with the same gates: as compare.kinds, with gate_objects.json.

    python -m conformance.compare.gates --oracle URL --oracle-token T --server URL --token T
        [--kind PART] [--variants N] [--seed N]
    python -m conformance.compare.gates --flags on|off

Both servers should be fresh, without controllers, and have `--disable-admission-plugins=ServiceAccount` and what `--flags` prints:
every gate of the API that is off by default switched on, or every one that is on by default and not locked switched off.
"""

import argparse
import json
import sys
from typing import Any, Final

from conformance.compare.kinds import Comparison, summarize
from conformance.exchange import HERE, Client, comparing

_OBJECTS: Final[dict[str, list[dict[str, Any]]]] = json.loads((HERE / "gate_objects.json").read_text())
_AREAS: Final = {"on": "gates-on", "off": "gates-off"}


def main() -> int:
    flags = argparse.ArgumentParser(add_help=False)
    flags.add_argument("--flags", choices=tuple(_AREAS))
    wanted, rest = flags.parse_known_args()
    if wanted.flags:
        print(" ".join(json.loads((HERE / "areas.json").read_text())[_AREAS[wanted.flags]]))
        return 0
    parser = comparing(__doc__, variants=20)
    parser.add_argument("--kind", default="", help="only collections whose path has this in it")
    arguments = parser.parse_args(rest)
    comparison = Comparison(
        Client(arguments.oracle, arguments.oracle_token),
        Client(arguments.server, arguments.token),
        arguments.seed,
        arguments.variants,
        quiet=False,
        rich=_OBJECTS,
        small={},
    )
    for collection in _OBJECTS:
        if arguments.kind in collection:
            comparison.kind(collection)
            print(f"{collection}: {comparison.scores[collection]}", flush=True)
    summarize(comparison)
    return 0


if __name__ == "__main__":
    sys.exit(main())
