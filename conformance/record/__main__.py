"""Records what a real kube-apiserver answers: `python -m conformance.record --server URL --token T [--area A ...]`.

The server should be fresh, with ServiceAccount admission off, so that pods can be created without a controller manager.
"""

import argparse
import json
import sys
from pathlib import Path

from conformance.exchange import Client, recording_of, run, scenarios
from conformance.players.credentials import Credentials


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--area", action="append", default=[])
    parser.add_argument(
        "--folder", type=Path, help="what conformance.players.credentials has made for the server's flags"
    )
    arguments = parser.parse_args()
    credentials = Credentials(arguments.folder.absolute()) if arguments.folder else None
    client = Client(arguments.server, arguments.token, credentials)
    total = 0
    for _, path in scenarios(arguments.area):
        answers = run(path, client, patient=True)
        total += len(answers)
        target = recording_of(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        sort_keys = not json.loads(path.read_text()).get("keyOrder")
        rows = ",\n".join(json.dumps(answer, sort_keys=sort_keys) for answer in answers)
        target.write_text(f"[\n{rows}\n]\n")
        print(f"{target.parent.name}/{target.stem}: {len(answers)} answers", file=sys.stderr)
    print(f"{total} answers recorded", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
