"""States that can be compared between runs: without uids, times, generated names and whatever else follows from chance."""

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.cluster_signing import KUBE_APISERVER_SERVING
from fakeapiserver.component_helpers.objects import is_terminating
from fakeapiserver.evidence import election
from fakeapiserver.state import diff
from fakeapiserver.storage.interface import StoredObject
from fakeapiserver.storage.mvcc import Snapshot
from fakeapiserver.sweep import history, kinds

# Objects that the server, nodes and leader election write all the time.
_OTHERS: Final = frozenset((
    "apiservices.apiregistration.k8s.io", "csinodes", "events", "events.events.k8s.io", "ipaddresses", "leases", "nodes",
    "volumeattachments",    "componentstatuses", "servicecidrs", "flowschemas", "prioritylevelconfigurations",
))  # fmt: skip
_OTHER_NAMESPACES: Final = frozenset(("kube-system", "kube-public", "kube-node-lease"))
CONVERSION: Final = "conversion of "
_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
_WEBHOOKS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_MADE: Final = frozenset((("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default"), ("services", "kubernetes"),
    ("endpoints", "kubernetes"), ("endpointslices", "kubernetes")))  # fmt: skip
_BUNDLE: Final = f"{KUBE_APISERVER_SERVING.replace('/', ':')}:"  # of the authority, which each server has for itself
_DROPPED: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# Fields that the server, the scheduler and nodes choose, otherwise in every run.
_CHOSEN: Final = frozenset((
    "nodePort", "healthCheckNodePort", "containerID", "nodeName",
    "volume.kubernetes.io/selected-node", "local.path.provisioner/selected-node",
))  # fmt: skip
# What the server appends to generateName.
_GENERATED: Final = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The volume that the admission plugin ServiceAccount adds to pods.
_TOKEN_VOLUME: Final = re.compile(r"kube-api-access-[a-z0-9]{5}")
# By itself, or as a part of a URL or of an endpoint with its port; no version of an image.
_ADDRESS: Final = re.compile(r"(?<![\w.:-])\d{1,3}(\.\d{1,3}){3}(?![\w.-])")
# Annotations about the way to a state: how often a deployment was changed, when endpoints were.
_OF_THE_WAY: Final = frozenset((
    "deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation",
    "endpoints.kubernetes.io/last-change-trigger-time",
))  # fmt: skip
_SECRET: Final = "(secret)"
# The perturbation's own mark on an object that another writer touches.
TOUCHED: Final = "fakeapiserver/touched"

Change = Literal["missing", "additional", "changed"]
# An object's title, such as `secrets shop/db`, and the object.
State = Mapping[str, Object]
# The uids of a run: two for each step, those after its last one being those before the next step.
Uids = Sequence[Mapping[str, str]]


class Difference(Struct, frozen=True, order=True):
    """A difference from the run that was learnt. `path` is empty if the object is missing, or exists in the other run only.

    - `text`: the predicate of a sentence about the object. `kind`: the object's kind, "" if it isn't known.
    - `wanted`, `actual`: the values as JSON, "" if absent. Values of Secrets are hidden.
    """

    title: str
    path: str
    text: str
    kind: str = ""
    wanted: str = ""
    actual: str = ""

    @property
    def change(self) -> Change:
        """The way in which the object differs."""
        return "changed" if self.path else "additional" if self.actual else "missing"

    @property
    def shown(self) -> str:
        """`the Secret shop/db is missing`"""
        return f"{kinds.spoken(self.title, self.kind)} {self.text}"


class Names(Struct):
    """The stable names of objects whose real names and uids are different in every run."""

    by_text: dict[str, str]

    def title(self, resource: str, namespace: str, name: str) -> str:
        """`secrets shop/db`; a generated name is the base and a number: `pods shop/web-*1`."""
        return f"{resource} {f'{namespace}/' if namespace else ''}{self.by_text.get(name, name)}"


def objects_of(snapshot: Snapshot, without: Collection[str] = ()) -> list[tuple[str, StoredObject, Object]]:
    """The users' objects with their resources, in the order in which they were created. `without`: keys of objects that are left out."""
    found = [
        (resource, stored, obj)
        for bucket, objects in snapshot.buckets.items()
        if (resource := diff.title_of(bucket)) not in _OTHERS and resource.partition(".")[0] not in _OTHERS
        for stored in objects.values()
        if stored.key not in without and _is_users(resource, obj := msgspec.json.decode(stored.value))
    ]
    return sorted(found, key=lambda each: each[1].create_revision)


def names_of(objects: Sequence[tuple[str, StoredObject, Object]]) -> Names:
    """The stable names of generated names and uids."""
    names: dict[str, str] = {}
    counts: dict[tuple[str, str, str], int] = {}
    for resource, _, obj in objects:
        meta = obj["metadata"]
        base, namespace = meta.get("generateName"), meta.get("namespace", "")
        if base and _is_generated(meta):
            key = (resource, namespace, base)
            counts[key] = counts.get(key, 0) + 1
            names[meta["name"]] = f"{base}*{counts[key]}"
        if meta.get("uid"):
            names[meta["uid"]] = f"<uid of {resource} {names.get(meta['name'], meta['name'])}>"
    for _, _, obj in objects:  # such as volumes, whose names have the uid of the claim
        name = obj["metadata"]["name"]
        if (found := _UID.search(name)) and found[0] in names:
            names[name] = name.replace(found[0], names[found[0]])
    return Names(names)


def state_of(snapshot: Snapshot, former: Names | None = None, without: Collection[str] = ()) -> State:
    """The state in comparable form. `former`: names of objects that are gone, to which others may still point; `without`: keys of objects
    that are left out."""
    objects = objects_of(snapshot, without)
    names = names_of(objects)
    custom = kinds.custom(_definitions(snapshot))
    known = {**(former.by_text if former is not None else {}), **names.by_text}
    return history.left_out(
        {
            names.title(resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): {
                "kind": kinds.of_resource(resource, custom),
                **_plain(resource, obj, known),
            }
            for resource, _, obj in objects
        }
    )


def _definitions(snapshot: Snapshot) -> Iterator[Object]:
    """Yields the CustomResourceDefinitions, decoded once for all states that have them."""
    for bucket, objects in snapshot.buckets.items():
        if diff.title_of(bucket).startswith("customresourcedefinitions"):
            yield from (_decoded(stored.value) for stored in objects.values())


@lru_cache(maxsize=256)
def _decoded(value: bytes) -> Object:
    obj: Object = msgspec.json.decode(value)
    return obj


def uids_of(snapshot: Snapshot, without: Collection[str] = ()) -> dict[str, str]:
    """The uid of each object by its title. Left out are those with generated names, and those that are being deleted."""
    return {
        f"{resource} {'/'.join(part for part in (meta.get('namespace'), meta['name']) if part)}": meta.get("uid", "")
        for resource, _, obj in objects_of(snapshot, without)
        if not _is_generated(meta := obj["metadata"]) and not is_terminating(obj)
    }


def replaced(first: Uids, second: Uids, ignore: Sequence[str] = ()) -> list[Set[str]]:
    """Returns for each step the titles of the objects that it replaces in both runs, without resources that match `ignore`."""
    both = (one & other for one, other in zip(_replaced(first), _replaced(second), strict=False))
    return [{title for title in each if not _is_ignored(title.partition(" ")[0], ignore)} for each in both]


def unreplaced(uids: Uids, now: Mapping[str, str], expected: Sequence[Set[str]]) -> list[str]:
    """Returns the titles of the objects that should have been replaced, and are still there. `uids`: those of the run so far, which may be
    in the midst of a step; `now`: those of the present; `expected`: what each step replaces."""
    before = [*uids[1::2]]
    return sorted(
        title
        for titles, former in zip(expected[1:], before, strict=False)
        for title in titles
        if title in former and former[title] == now.get(title)
    )


def _replaced(uids: Uids) -> list[Set[str]]:
    ends: Uids = [{}, *uids[1::2]]
    return [
        {title for title, uid in former.items() if after.get(title, uid) != uid}
        for former, after in itertools.pairwise(ends)
    ]


def webhooks_of(snapshot: Snapshot) -> dict[str, list[str]]:
    """The names of the webhooks, and the plural names of the resources that each is called for. A conversion webhook has the name of its
    definition after CONVERSION."""
    found: dict[str, list[str]] = {}
    for resource, _, obj in objects_of(snapshot):
        if resource.partition(".")[0] in _WEBHOOKS:
            for hook in obj.get("webhooks") or ():
                found[hook["name"]] = [each for rule in hook.get("rules") or () for each in rule["resources"]]
        elif resource == _DEFINITIONS and (obj["spec"].get("conversion") or {}).get("strategy") == "Webhook":
            found[f"{CONVERSION}{obj['metadata']['name']}"] = [obj["spec"]["names"]["plural"]]
    return found


def differences(wanted: State, found: State, noise: Collection[str], ignore: Sequence[str] = ()) -> list[Difference]:
    """The differences of `found`, apart from `noise` (see `noise_of`) and fields that match `ignore` (`configmaps.data.*`)."""
    result: list[Difference] = []
    for title in sorted(wanted.keys() | found.keys()):
        resource = title.partition(" ")[0]
        if title in noise or _is_ignored(resource, ignore):
            continue
        if title not in found:
            result.append(_missing(title, wanted[title]))
        elif title not in wanted:
            result.append(_additional(title, found[title]))
        else:
            result += _fields(title, resource, wanted[title], found[title], noise, ignore)
    return result


def _is_ignored(resource: str, ignore: Sequence[str]) -> bool:
    return any(fnmatchcase(resource, pattern) for pattern in ignore)


def noise_of(first: State, second: State) -> frozenset[str]:
    """The objects and fields that differ between two unperturbed runs, by chance; fields as `TITLE PATH`."""
    return frozenset(
        f"{each.title} {each.path}" if each.path else each.title for each in differences(first, second, frozenset())
    )


def brought_up_to_date(before: State, restarted: State) -> frozenset[str]:
    """The fields of statuses that a restart of the operator changes, as `TITLE PATH`. The operator changes them at other times, too."""
    changed = differences(before, restarted, frozenset()) if before else ()
    return frozenset(f"{each.title} {each.path}" for each in changed if each.path.partition(".")[0] == "status")


def _fields(
    title: str, resource: str, wanted: Object, found: Object, noise: Collection[str], ignore: Sequence[str]
) -> list[Difference]:
    return [
        Difference(title, each.path, _changed(each), wanted.get("kind", ""), _json(each.old), _json(each.new))
        for each in diff.fields(resource, wanted, found)
        if f"{title} {each.path}" not in noise
        and f"{title} {each.path.partition('.')[0]}" not in noise
        and not any(fnmatchcase(f"{resource}.{each.path}", pattern) for pattern in ignore)
    ]


def _missing(title: str, obj: Object) -> Difference:
    return Difference(title, "", "is missing", obj.get("kind", ""), wanted=_json(_hidden(title, obj)))


def _additional(title: str, obj: Object) -> Difference:
    return Difference(title, "", "exists, but should not", obj.get("kind", ""), actual=_json(_hidden(title, obj)))


def _changed(field: diff.Field) -> str:
    """`has data.size "3" instead of "1"`"""
    if field.new is diff.ABSENT:
        return f"lacks {field.path}, which should be {_shown(field.old)}"
    rest = ", which should be unset" if field.old is diff.ABSENT else f" instead of {_shown(field.old)}"
    return f"has {field.path} {_shown(field.new)}{rest}"


def _hidden(title: str, obj: Object) -> Object:
    """The object without the values of a Secret."""
    if not title.startswith("secrets "):
        return obj
    meta = {**obj.get("metadata", {})}
    if "annotations" in meta:
        meta["annotations"] = dict.fromkeys(meta["annotations"], _SECRET)
    values: Object = {name: dict.fromkeys(obj[name], _SECRET) for name in ("data", "stringData") if name in obj}
    return {**obj, **values, "metadata": meta}


def _json(value: Any) -> str:
    return "" if value is diff.ABSENT else json.dumps(value, ensure_ascii=False)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _is_generated(meta: Object) -> bool:
    """Reports whether the server has made up the name. The pods of a StatefulSet have a `generateName`, too, but end in their number."""
    base, name = meta.get("generateName"), meta["name"]
    return bool(base) and name.startswith(base) and bool(_GENERATED.fullmatch(name.removeprefix(base)))


def _is_users(resource: str, obj: Object) -> bool:
    meta = obj["metadata"]
    if meta.get("namespace") in _OTHER_NAMESPACES or election.is_record(obj):
        return False
    return (resource.partition(".")[0], meta["name"]) not in _MADE and not meta["name"].startswith(_BUNDLE)


def _plain(resource: str, obj: Object, names: Mapping[str, str]) -> Object:
    meta = {key: value for key, value in obj["metadata"].items() if key not in _DROPPED}
    marks = {key: value for key, value in meta.pop("annotations", {}).items() if key not in (*_OF_THE_WAY, TOUCHED)}
    if marks:
        meta["annotations"] = marks
    generation = obj["metadata"].get("generation")
    replaced = _replacing(names, generation)
    plain: Object = replaced({**obj, "metadata": meta})
    if resource == "persistentvolumes":  # are on the node that was chosen for the first pod
        plain["spec"].pop("nodeAffinity", None)
    return plain


def _replacing(names: Mapping[str, str], generation: Any) -> Callable[[Any], Any]:
    parts = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True)))) if names else None

    def replaced(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            # operators copy the annotations of their custom resource, and those of a perturbation with them
            items = ((key, item) for key, item in value.items() if key not in _CHOSEN and item != {TOUCHED: "true"})
            return {_named(key): replaced(item, key) for key, item in items if key != TOUCHED}
        if isinstance(value, list):
            return [replaced(item, name) for item in value]
        if name == "observedGeneration":
            return "current" if value == generation else "behind"
        return _named(value) if isinstance(value, str) else value

    def _named(text: str) -> str:
        if _TIME.fullmatch(text):
            return "<time>"
        text = _ADDRESS.sub("<address>", _TOKEN_VOLUME.sub("kube-api-access-*", text))
        return parts.sub(lambda found: names[found[0]], text) if parts is not None else text

    return replaced
