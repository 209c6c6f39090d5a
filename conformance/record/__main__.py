"""Records what a real kube-apiserver answers: `python -m conformance.record --server URL --token T [--area A ...]`.

The server should be fresh, with ServiceAccount admission off, so that pods can be created without a controller manager.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from conformance import recordings
from conformance.exchange import HERE, Client, recording_of, run, scenarios
from conformance.players.credentials import Credentials
from conformance.players.server_states import RealStates

# Areas whose answers to the same requests are nearly the same.
SIMILAR: Final = {
    "v1.37": ("discovery", "kinds", "v1.35"),
    "v1.37-changes": ("kinds", "conversion", "deletes", "writes", "auth", "patches"),
    "v1.37-alwaysdeny": ("alwaysdeny",),
    "v1.37-cbor": ("cbor",),
    "v1.35": ("discovery", "kinds"),
    "v1.34": ("v1.35",),
    "v1.33": ("v1.34",),
    "gates-off": ("gates-on",),
}


def similar(path: Path) -> str:
    """Returns the area that has nearly the same answers to this scenario's requests, or ""."""
    requests = path.read_text()
    areas = SIMILAR.get(path.parent.name, ())
    others = {area: HERE / "scenarios" / area / path.name for area in areas}
    return next((area for area, other in others.items() if other.exists() and other.read_text() == requests), "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--area", action="append", default=[])
    parser.add_argument(
        "--folder", type=Path, help="what conformance.players.credentials has made for the server's flags"
    )
    parser.add_argument(
        "--states", type=Path, help="a folder with `pids` (etcd's, the API server's) and `sa.key`, for the area faults"
    )
    parser.add_argument("--etcd", help="the URL of etcd's clients, with --states")
    arguments = parser.parse_args()
    if bool(arguments.states) != bool(arguments.etcd):
        parser.error("--states and --etcd belong together")
    credentials = Credentials(arguments.folder.absolute()) if arguments.folder else None
    states = (
        RealStates(arguments.server, arguments.token, arguments.states.absolute(), arguments.etcd)
        if arguments.states
        else None
    )
    client = Client(arguments.server, arguments.token, credentials, states=states)
    total = 0
    for _, path in scenarios(arguments.area):
        answers = run(path, client, patient=True)
        total += len(answers)
        target = recording_of(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        scenario = recordings.scenario(path.read_text())
        ordered = bool(scenario.get("keyOrder"))
        recordings.write(target, answers, scenario["requests"], similar=similar(path), ordered=ordered)
        print(f"{target.parent.name}/{target.stem}: {len(answers)} answers", file=sys.stderr)
    print(f"{total} answers recorded", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
