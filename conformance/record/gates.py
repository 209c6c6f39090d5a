"""Records a Kubernetes version's feature gates, and the resources and bootstrap objects of a server that depend on them.

    python -m conformance.record.gates --assets DIR --modules DIR [DIR ...] --gate GATE [--gate GATE ...]
        --out fakeapiserver/apis/versions/v1.36

--assets has kube-apiserver and etcd, which are started once for each --gate, with the gate switched from its default; --modules are the
sources of k8s.io/kubernetes, apiserver and apiextensions-apiserver. The gates to name are those that `asked_for` finds in these.

feature_gates.json has a gate a line: its default and stage as the running server reports them, whether it is locked and which gates it
needs as the sources do, and the resources (group/version/resource) that are there only while it is on. bootstrap_gated.json has for each
gate that is off by default the roles and bindings that a server has with it, new ones or instead of others of their name; for a gate that
is on by default, as "-GATE", those without it.
"""

import argparse
import re
import ssl
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from conformance.bench.servers import TOKEN, Reference
from conformance.record.types import Get, bootstrap, connect, discovery, lines

_RBAC: Final = "rbac.authorization.k8s.io/v1"
_METRIC: Final = re.compile(r'^kubernetes_feature_enabled\{name="(\w+)",stage="(\w*)"\} ([01])$', re.MULTILINE)
_CONSTANT: Final = re.compile(r'^\s*(\w+)\s+featuregate\.Feature = "(\w+)"$', re.MULTILINE)
_SPECS: Final = re.compile(r"^\t(?:\w+\.)?(\w+): \{\n((?:\t\t.*\n)+)\t\},$", re.MULTILINE)
_NEEDS: Final = re.compile(r"^\t(?:\w+\.)?(\w+): +\{([\w., \n\t]+?),?\s*\},(?: *//.*)?$", re.MULTILINE)
_ASKED: Final = re.compile(r"eatures\.([A-Z]\w+)")
_ASKING: Final = ("pkg/registry/*/rest/storage_*.go", "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/*.go")

Json = Any
State = tuple[set[str], dict[tuple[str, str, str], Json]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assets", type=Path, required=True)
    parser.add_argument("--modules", type=Path, nargs="+", required=True)
    parser.add_argument("--gate", action="append", default=[])
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    locked, needs = said_in_sources(arguments.modules)
    with Server(arguments.assets, []) as server:
        gates = server.gates()
        for name, gate_row in gates.items():
            if name in locked:
                gate_row["locked"] = True
            if needed := needs.get(name):
                gate_row["needs"] = needed
        resources, objects = server.state()
    gated: dict[str, Json] = {}
    # what a gate brings must be known before that of the gates that need it
    for gate in sorted(arguments.gate, key=lambda name: _depth(name, needs)):
        if gate not in gates or gate in locked:
            print(f"{gate}: can't be switched", file=sys.stderr)
            continue
        on = not gates[gate]["default"]
        switches = {gate: on, **(dict.fromkeys(gates[gate].get("needs", ()), True) if on else {})}
        if not on:
            switches |= {
                other: False for other, row in gates.items() if gate in row.get("needs", ()) and row["default"]
            }
        flag = ",".join(f"{name}={str(value).lower()}" for name, value in switches.items())
        try:
            with Server(arguments.assets, [f"--feature-gates={flag}"]) as server:
                others, changed = server.state()
        except RuntimeError as error:
            print(f"{flag}: {error}", file=sys.stderr)
            continue
        # what a gate that it needs brings isn't its own
        needed = [name for name in switches if name != gate]
        known = {name for other in needed for name in gates[other].get("resources", ())}
        if depending := sorted((others ^ resources) - known):
            gates[gate]["resources"] = depending
        brought = [obj for other in needed for obj in gated.get(other, ())]
        different = [obj for key, obj in changed.items() if objects.get(key) != obj and obj not in brought]
        if different:
            gated[gate if on else f"-{gate}"] = different
        gone = [*objects.keys() - changed.keys()]
        print(f"{gate}: {len(depending)} resources, {len(different)} objects, without {gone}", file=sys.stderr)
    (arguments.out / "feature_gates.json").write_text(lines(dict(sorted(gates.items())), 1) + "\n")
    (arguments.out / "bootstrap_gated.json").write_text(lines(gated, 2) + "\n")
    return 0


class Server:
    """A real server that serves all versions, unless it is to serve the default ones, while in a `with` block."""

    def __init__(self, assets: Path, flags: Sequence[str], *, serves_all: bool = True) -> None:
        versions = ["--runtime-config=api/all=true"] if serves_all else []
        self._reference = Reference(assets, flags=[*versions, "--advertise-address=192.0.2.10", *flags])
        self._get: Get | None = None

    def __enter__(self) -> "Server":
        self._reference.start()
        self._get = connect(self._reference.url, TOKEN)
        return self

    def __exit__(self, *_: object) -> None:
        self._reference.stop()

    def metrics(self) -> str:
        context = ssl._create_unverified_context()
        request = urllib.request.Request(f"{self._reference.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, context=context, timeout=60) as answer:
            return str(answer.read(), "utf-8")

    def gates(self) -> dict[str, Json]:
        """The default and the stage of each gate, as the running server reports them."""
        return {
            name: {"default": on == "1", "stage": stage or "GA"} for name, stage, on in _METRIC.findall(self.metrics())
        }

    def state(self) -> State:
        """The served resources, and the roles and bindings there are."""
        assert self._get is not None
        rows = discovery(self._get)
        served = {
            f"{group['metadata'].get('name', '')}/{version['version']}/{resource['resource']}"
            for groups in rows.values()
            for group in groups
            for version in group["versions"]
            for resource in version["resources"]
        }
        found = bootstrap(self._get, rows)
        return served, {
            (obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
            for obj in found
            if obj["apiVersion"] == _RBAC
        }


def asked_for(modules: Sequence[Path]) -> list[str]:
    """The gates that decide in the sources which resources, roles and bindings a server has."""
    names = {name: gate for text in _features(modules) for name, gate in _CONSTANT.findall(text)}
    paths = (path for module in modules for pattern in _ASKING for path in sorted(module.glob(pattern)))
    texts = (path.read_text() for path in paths if not path.name.endswith("_test.go"))
    return sorted({names.get(name, name) for text in texts for name in _ASKED.findall(text)})


def _features(modules: Sequence[Path]) -> list[str]:
    """The sources that declare gates."""
    return [path.read_text() for module in modules for path in sorted(module.glob("pkg/features/*features.go"))]


def said_in_sources(modules: Sequence[Path]) -> tuple[set[str], dict[str, list[str]]]:
    """The gates that are locked at the sources' own version, and what gates need."""
    names: dict[str, str] = {}
    texts = _features(modules)
    for text in texts:
        names |= dict(_CONSTANT.findall(text))
    locked = {names.get(name, name) for text in texts for name, rows in _SPECS.findall(text) if _last_locks(rows)}
    needs = {
        names.get(name, name): [names.get(one, one) for one in _words(listed)]
        for text in texts
        for name, listed in _NEEDS.findall(text.partition("FeatureGateDependencies = ")[2])
    }
    return locked, needs


def _depth(gate: str, needs: Mapping[str, Sequence[str]]) -> int:
    """The length of the longest chain of gates that a gate needs."""
    return 1 + max((_depth(needed, needs) for needed in needs.get(gate, ())), default=0)


def _last_locks(rows: str) -> bool:
    return "LockToDefault: true" in [row for row in rows.splitlines() if "Version:" in row][-1]


def _words(listed: str) -> Iterator[str]:
    for word in listed.replace("\n", " ").split(","):
        if name := word.strip().rpartition(".")[2]:
            yield name


if __name__ == "__main__":
    sys.exit(main())
