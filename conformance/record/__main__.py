"""Records what a real kube-apiserver answers: `python -m conformance.record --server URL --token T [--area A ...]`.

The server should be fresh, with ServiceAccount admission off, so that pods can be created without a controller manager.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from conformance import recordings
from conformance.exchange import Client, recording_of, run, scenarios
from conformance.players.credentials import Credentials

# Areas of older versions, and the version whose answers to the same requests are nearly the same.
SIMILAR: Final = {"v1.34": "v1.35", "v1.33": "v1.34"}


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
    for area, path in scenarios(arguments.area):
        answers = run(path, client, patient=True)
        total += len(answers)
        target = recording_of(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        scenario = recordings.scenario(path.read_text())
        if scenario.get("keyOrder"):
            target.write_text(recordings.lines(answers))
        else:
            recordings.write(target, answers, scenario["requests"], similar=SIMILAR.get(area, ""))
        print(f"{target.parent.name}/{target.stem}: {len(answers)} answers", file=sys.stderr)
    print(f"{total} answers recorded", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
