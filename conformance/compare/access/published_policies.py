"""Compares published ValidatingAdmissionPolicies and MutatingAdmissionPolicies, and objects that they check, at a real server and another
one.

    python -m conformance.compare.access.published_policies --oracle URL --oracle-token T --server URL --token T [PACKAGE …]

The packages (`published_policies.json`) are fetched by their registries' ordinary clients. A folder's policies are written to both
servers, each bound, with the folder's other objects as params and samples; when the real server enforces them, these and the samples
in the table are created, changed and deleted under them, and every answer is compared. Policies of older versions are read as v1.
Both servers should be fresh.
"""

import argparse
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from conformance.compare.access.policies import Both, wait_for
from conformance.compare.requests import Report
from conformance.exchange import Client, difference
from conformance.random.policies import REGISTRATION
from conformance.suites.operators.packages import Package, documents, fetch

Object = dict[str, Any]

_TABLE: Final = json.loads((Path(__file__).parent / "published_policies.json").read_text())
_POLICIES: Final = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
_GROUP: Final = "admissionregistration.k8s.io/"
_MERGE: Final = "application/merge-patch+json"
# What a folder may hold besides that is no sample: tests of other tools, and definitions that would outlive the folder.
_OTHERS: Final = ("kyverno.io", "chainsaw.kyverno.io", "cli.kyverno.io", "kustomize.config.k8s.io", "wgpolicyk8s.io")


@dataclass(slots=True)
class Folder:
    """`objects` are the bindings, params and samples beside the policies."""

    path: str
    policies: list[Object] = field(default_factory=list)
    bindings: list[Object] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)


def folders(package: Package, archive: Path) -> Iterator[Folder]:
    """Yields the folders that contain policies; each text is used once."""
    found: dict[str, Folder] = {}
    seen: set[str] = set()
    with zipfile.ZipFile(archive) as files:
        root = f"{package.module}@{package.version}/"
        names = [name for name in files.namelist() if name.startswith(root) and name.endswith((".yaml", ".yml"))]
        holding = {
            str(PurePosixPath(name).parent)
            for name in names
            if any(kind.encode() in files.read(name) for kind in _POLICIES)
        }
        for name in sorted(names):
            parent = str(PurePosixPath(name).parent)
            if parent in holding:
                folder = found.setdefault(parent, Folder(parent.removeprefix(root)))
                for document in documents(files.read(name)):
                    _sort(folder, document, seen)
    yield from (folder for folder in found.values() if folder.policies)


def _sort(folder: Folder, document: Object, seen: set[str]) -> None:
    kind, version = str(document.get("kind", "")), str(document.get("apiVersion", ""))
    if kind == "List":
        for item in document.get("items") or ():
            _sort(folder, item, seen)
        return
    if not isinstance(document.get("metadata"), dict) or not kind or not version:
        return
    if version.startswith(_GROUP) and kind.startswith(_POLICIES):
        document = {**document, "apiVersion": f"{_GROUP}v1"}
        spec = json.dumps(document.get("spec"), sort_keys=True)
        if kind in _POLICIES and (document.get("spec") or {}).get("matchConstraints") and spec not in seen:
            seen.add(spec)
            document.pop("status", None)
            folder.policies.append(document)
        elif kind.endswith("Binding") and document.get("spec"):
            folder.bindings.append(document)
    elif version.partition("/")[0] not in _OTHERS and not version.partition("/")[0].endswith("kyverno.io"):
        folder.objects.append(document)


class Kinds:
    """Finds the paths at which kinds are served."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], tuple[str, bool] | None] = {}

    def path(self, obj: Mapping[str, Any]) -> str:
        """Returns the path of the object's collection, or "" if the kind isn't served."""
        version, kind = str(obj["apiVersion"]), str(obj["kind"])
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (version, kind) not in self._known:
            body = self._client.send({"method": "GET", "path": root}, []).get("body") or {}
            rows = [row for row in body.get("resources") or () if row["kind"] == kind and "/" not in row["name"]]
            self._known[version, kind] = (rows[0]["name"], rows[0]["namespaced"]) if rows else None
        served = self._known[version, kind]
        if served is None:
            return ""
        namespace = obj["metadata"].get("namespace") or "default"
        return f"{root}/namespaces/{namespace}/{served[0]}" if served[1] else f"{root}/{served[0]}"


def run(both: Both, kinds: Kinds, folder: Folder, number: int) -> None:
    spaces = {obj["metadata"].get("namespace") for obj in folder.objects} - {None, "default", "kube-system"}
    for name in sorted(spaces):
        both.send({"method": "POST", "path": "/api/v1/namespaces", "body": {"metadata": {"name": name}}})
    params = {(policy["spec"].get("paramKind") or {}).get("kind") for policy in folder.policies}
    for obj in folder.objects:
        if obj["kind"] in params and (path := kinds.path(obj)):
            both.compare(f"{folder.path} params", {"method": "POST", "path": path, "body": obj})
    written = list(_policies(folder))
    for path, obj in written:
        both.compare(folder.path, {"method": "POST", "path": f"{REGISTRATION}/{path}", "body": obj})
    wait_for(both, f"published-{number}")
    for obj in [*folder.objects, *_TABLE["samples"]]:
        _try(both, kinds, folder, obj)
    for path, obj in reversed(written):
        both.send({"method": "DELETE", "path": f"{REGISTRATION}/{path}/{obj['metadata']['name']}"})


def _policies(folder: Folder) -> Iterator[tuple[str, Object]]:
    """With their bindings, those of the folder or plain ones."""
    for policy in folder.policies:
        kind, name = str(policy["kind"]), policy["metadata"]["name"]
        plural = f"{kind.lower().removesuffix('y')}ies"
        yield plural, policy
        bindings = [b for b in folder.bindings if b["kind"] == f"{kind}Binding" and b["spec"].get("policyName") == name]
        yield from ((f"{kind.lower()}bindings", binding) for binding in bindings)
        if not bindings:
            spec: Object = {"policyName": name}
            if kind == _POLICIES[0]:
                spec["validationActions"] = ["Deny"]
            if params := policy["spec"].get("paramKind"):
                named = next((obj for obj in folder.objects if obj["kind"] == params["kind"]), None)
                meta = {"name": "none"} if named is None else named["metadata"]
                spec["paramRef"] = {
                    "parameterNotFoundAction": "Deny",
                    **{key: meta[key] for key in ("name", "namespace") if key in meta},
                }
            yield f"{kind.lower()}bindings", {"metadata": {"name": f"{name}-bound"}, "spec": spec}


def _try(both: Both, kinds: Kinds, folder: Folder, obj: Object) -> None:
    path = kinds.path(obj)
    name = obj["metadata"].get("name")
    if not path or not name or obj["kind"] == "CustomResourceDefinition":
        if path:  # only looked at: others need it as it is
            both.compare(folder.path, {"method": "POST", "path": f"{path}?dryRun=All", "body": obj})
        return
    create = {"method": "POST", "path": path, "body": obj}
    expected, got = both.compare(folder.path, create)
    if expected["status"] and difference(expected, got):
        print(f"  {json.dumps(folder.policies)[:4000]}", flush=True)
    one = f"{path}/{name}"
    labels = {"metadata": {"labels": {"changed": "yes"}}}
    both.compare(folder.path, {"method": "PATCH", "path": one, "type": _MERGE, "body": labels})
    if obj["kind"] in ("Deployment", "StatefulSet"):
        scale = {"spec": {"replicas": 7}}
        both.compare(folder.path, {"method": "PATCH", "path": f"{one}/scale", "type": _MERGE, "body": scale})
    both.compare(folder.path, {"method": "DELETE", "path": f"{one}?gracePeriodSeconds=0"})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--oracle", "--oracle-token", "--server", "--token"):
        parser.add_argument(name, required=True)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    arguments = parser.parse_args()
    report = Report()
    clients = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    both, kinds, policies, number = Both(*clients, report), Kinds(clients[0]), 0, 0
    for row in _TABLE["packages"]:
        if arguments.packages and row["name"] not in arguments.packages:
            continue
        package = Package(**row, definitions=())
        for folder in folders(package, fetch(package)):
            policies += len(folder.policies)
            number += 1
            run(both, kinds, folder, number)
    print(f"{policies} policies; {report.summary()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
