"""A state as manifests: one file for each object, without what the server has set."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fakeapiserver.apimachinery.meta import Object

# Members of metadata that the server sets.
_SERVER_SET: Final = (
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "ownerReferences",
    "resourceVersion", "selfLink", "uid",
)  # fmt: skip
_MADE_ANNOTATIONS: Final = ("deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration")
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_JOB_LABELS: Final = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
CLUSTER: Final = "_cluster"


def manifest(obj: Object, *, secrets: bool) -> Object:
    """Returns the object as a user would write it: without status and without what the server has set. Values of Secrets are empty
    unless `secrets`."""
    meta = {name: value for name, value in obj["metadata"].items() if name not in _SERVER_SET}
    annotations = {name: value for name, value in meta.pop("annotations", {}).items() if name not in _MADE_ANNOTATIONS}
    if annotations:
        meta["annotations"] = annotations
    result: Object = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": meta}
    result |= {name: value for name, value in obj.items() if name not in (*result, "status")}
    match obj["kind"]:
        case "Secret" if not secrets and "data" in result:
            result["data"] = dict.fromkeys(result["data"], "")
        case "Namespace":
            result.pop("spec", None)
            meta["labels"] = {name: value for name, value in meta.get("labels", {}).items() if name != _NAMESPACE_NAME}
        case "Job" if not obj["spec"].get("manualSelector"):
            # the server generates these from the Job's uid
            result["spec"] = {name: value for name, value in obj["spec"].items() if name != "selector"}
            template = obj["spec"]["template"]
            labels = {
                name: value for name, value in template["metadata"].get("labels", {}).items() if name not in _JOB_LABELS
            }
            result["spec"]["template"] = {**template, "metadata": {**template["metadata"], "labels": labels}}
            meta["labels"] = {name: value for name, value in meta.get("labels", {}).items() if name not in _JOB_LABELS}
    if not meta.get("labels", True):
        del meta["labels"]
    return result


def write(folder: Path, objects: Iterable[Object]) -> list[Path]:
    """Writes `folder/NAMESPACE/KIND-NAME.yaml` for each object, in `_cluster` for those without a namespace; returns the paths. Files
    with Secrets have mode 0600. Raises OSError."""
    import yaml

    paths = []
    for obj in objects:
        meta = obj["metadata"]
        place = folder / (meta.get("namespace") or CLUSTER)
        place.mkdir(parents=True, exist_ok=True)
        kind, _, group = obj["kind"].lower(), "", obj["apiVersion"].rpartition("/")[0]
        path = place / f"{kind}-{_UNSAFE.sub('_', meta['name'])}.yaml"
        if path in paths:  # kinds of two groups may have the same name
            path = path.with_name(f"{kind}.{group}-{_UNSAFE.sub('_', meta['name'])}.yaml")
        path.touch(0o600 if kind == "secret" else 0o644)
        path.write_text(
            yaml.safe_dump(json.loads(json.dumps(obj)), sort_keys=False, allow_unicode=True), encoding="utf-8"
        )
        paths.append(path)
    return paths
