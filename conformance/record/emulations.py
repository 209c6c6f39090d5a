"""Records the gates and resources of a version while it emulates older ones.

    python -m conformance.record.emulations --assets DIR --out fakeapiserver/apis/versions/v1.36

--assets has kube-apiserver and etcd, which are started once for each minor version that the program emulates. emulations.json has for each:
`gates`, the default and stage of gates that are otherwise than in the version itself; `later`, the gates that came after it; `without`, the
resources (group/version/resource) that the version serves by default and not while it emulates this one.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from conformance.record.gates import Server

# Upstream emulates so many minor versions before its own.
_SPAN: Final = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assets", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    own, own_resources = _state(arguments.assets, "")
    minor = int(arguments.out.name.rpartition(".")[2])
    found: dict[str, Any] = {}
    for number in range(minor - _SPAN, minor):
        try:
            gates, resources = _state(arguments.assets, f"1.{number}")
        except RuntimeError as error:
            print(f"1.{number} isn't emulated: {error}", file=sys.stderr)
            continue
        found[f"v1.{number}"] = {
            "gates": {gate: row for gate, row in gates.items() if row != own[gate]},
            "later": sorted(own.keys() - gates.keys()),
            "without": sorted(own_resources - resources),
        }
        print(f"1.{number}: {len(gates)} gates, {len(own_resources - resources)} resources fewer", file=sys.stderr)
    (arguments.out / "emulations.json").write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _state(assets: Path, emulated: str) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """The gates and the resources that are served by default. Raises RuntimeError if the server doesn't start."""
    flags = [f"--emulated-version={emulated}"] if emulated else []
    with Server(assets, flags, serves_all=False) as server:
        resources, _ = server.state()
        return dict(sorted(server.gates().items())), resources


if __name__ == "__main__":
    sys.exit(main())
