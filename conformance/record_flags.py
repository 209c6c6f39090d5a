"""Records which command line flags kube-apiserver has, and which controllers kube-controller-manager names.

    python -m conformance.record_flags --assets DIR --out fakeapiserver/apis/versions/v1.36/flags.json

DIR holds the two programs. Only names and types are kept; `serve` accepts these flags and refuses others.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

_FLAG = re.compile(r"^ +(?:-\w, )?--(?P<name>[\w-]+)(?: (?P<type>[\w/=,.\[\]'-]+))?(?:   .*)?$")
_CONTROLLERS = re.compile(
    r"^ *(All|Disabled-by-default) controllers: (?P<names>[\w, -]+?)(?: \(default.*)?$", re.MULTILINE
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--assets", type=Path, required=True, help="folder with kube-apiserver and kube-controller-manager"
    )
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    arguments = parser.parse_args()
    flags = flag_types(_help(arguments.assets / "kube-apiserver"))
    named, disabled = controllers(_help(arguments.assets / "kube-controller-manager"))
    document = {"flags": flags, "controllers": named, "controllersDisabledByDefault": disabled}
    arguments.out.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    print(f"{arguments.out}: {len(flags)} flags, {len(named)} controllers", file=sys.stderr)
    return 0


def flag_types(text: str) -> dict[str, str]:
    """Flag -> type as the help shows it; flags without a type take no value and are `bool`."""
    found = (_FLAG.match(line) for line in text.splitlines())
    return {match["name"]: match["type"] or "bool" for match in found if match}


def controllers(text: str) -> tuple[list[str], list[str]]:
    """All controllers, and those that `*` leaves out."""
    lists = [match["names"].split(", ") for match in _CONTROLLERS.finditer(text)]
    return sorted(lists[0]), sorted(lists[1])


def _help(program: Path) -> str:
    return subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
