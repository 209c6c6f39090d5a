"""Records which command line flags kube-apiserver and etcd have, and which controllers kube-controller-manager names.

    python -m conformance.record.flags --assets DIR --out fakeapiserver/apis/versions/v1.36 --manager URL --token T

DIR holds the three programs. Of kube-apiserver's flags names and types are kept (flags.json): `serve` accepts these and refuses
others; of kube-controller-manager's likewise (controller_manager_flags.json), for `fakeapiserver controller-manager`, with their
defaults and the configuration these make: a manager that was started with kubeconfigs and --secure-port only is asked for them. Of etcd's,
names and defaults (etcd_flags.txt, a flag a line): its stand-in reads them without a JSON library.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.exchange import Client

_FLAG = re.compile(r"^ +(?:-\w, )?--(?P<name>[\w-]+)(?: (?P<type>[\w/=,.\[\]'-]+))?(?:   .*)?$")
_ETCD_FLAG = re.compile(r"^ *--([\w-]+) (\S.*)$", re.MULTILINE)
# What the manager that is asked was started with.
_GIVEN = {"kubeconfig": "", "authentication-kubeconfig": "", "authorization-kubeconfig": "", "secure-port": "10257"}
_CONTROLLERS = re.compile(
    r"^ *(All|Disabled-by-default) controllers: (?P<names>[\w, -]+?)(?: \(default.*)?$", re.MULTILINE
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--assets", type=Path, required=True, help="folder with kube-apiserver, etcd and kube-controller-manager"
    )
    parser.add_argument("--manager", required=True, help="the URL of a kube-controller-manager")
    parser.add_argument("--token", required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    arguments = parser.parse_args()
    flags = flag_types(_help(arguments.assets / "kube-apiserver"))
    manager = _help(arguments.assets / "kube-controller-manager")
    named, disabled = controllers(manager)
    document = {"flags": flags, "controllers": named, "controllersDisabledByDefault": disabled}
    _write(arguments.out / "flags.json", document)
    table = {"flags": dict(sorted(flag_types(manager).items())), **_running(arguments)}
    # the configuration is in the order of Go's type, as it is shown
    (arguments.out / "controller_manager_flags.json").write_text(json.dumps(table, indent=1) + "\n")
    etcd = _ETCD_FLAG.findall(_help(arguments.assets / "etcd"))
    (arguments.out / "etcd_flags.txt").write_text("".join(f"{name} {default}\n" for name, default in etcd))
    print(f"{len(flags)} flags, {len(etcd)} of etcd, {len(named)} controllers", file=sys.stderr)
    return 0


def _running(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the default of each flag in /flagz, and the configuration in /configz."""
    client = Client(arguments.manager, arguments.token)
    text: str = client.send({"method": "GET", "path": "/flagz", "accept": "text/plain"}, [])["text"]
    (configuration,) = client.send({"method": "GET", "path": "/configz"}, [])["body"].values()
    configuration["Generic"]["ClientConnection"]["kubeconfig"] = ""
    return {"defaults": dict(sorted({**dict(_values(text)), **_GIVEN}.items())), "configuration": configuration}


def _values(text: str) -> Iterator[tuple[str, str]]:
    """Names and values are set apart by a sign of chance, with or without spaces."""
    for line in text.partition("Warning: ")[2].splitlines()[1:]:
        if match := re.match(r"([a-z0-9-]+)(?:=|: ?| = | )(.*)", line):
            yield match[1], match[2]


def flag_types(text: str) -> dict[str, str]:
    """Flag -> type as the help shows it; flags without a type take no value and are `bool`."""
    found = (_FLAG.match(line) for line in text.splitlines())
    return {match["name"]: match["type"] or "bool" for match in found if match}


def controllers(text: str) -> tuple[list[str], list[str]]:
    """All controllers, and those that `*` leaves out."""
    lists = [match["names"].split(", ") for match in _CONTROLLERS.finditer(text)]
    return sorted(lists[0]), sorted(lists[1])


def _write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


def _help(program: Path) -> str:
    return subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
