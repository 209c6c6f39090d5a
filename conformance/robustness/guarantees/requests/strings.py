"""Odd texts at every place of a request that takes text: no failure, and what is stored comes back as it was sent."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from conformance.robustness.guarantees.guarantee import Report
from conformance.robustness.guarantees.requests.sender import Sender, counted
from conformance.robustness.guarantees.requests.values import NAUGHTY
from conformance.robustness.served import CONFIG_MAPS, served

_POD: Final = {"containers": [{"name": "a", "image": "a"}]}
_APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_JSON_PATCH: Final = {"Content-Type": "application/json-patch+json"}
_YAML: Final = {"Content-Type": "application/yaml"}

Sent = tuple[str, str, bytes | None, Mapping[str, str]]


def _text(value: object) -> bytes:
    return json.dumps(value).encode()


def _config_map(**metadata: object) -> bytes:
    return _text({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}})


def _post(body: bytes, headers: Mapping[str, str] | None = None) -> Sent:
    return "POST", f"{CONFIG_MAPS}?dryRun=All", body, headers or {}


def _get(query: str) -> Sent:
    return "GET", f"{CONFIG_MAPS}?{query}", None, {}


def _pod(**spec: object) -> Sent:
    body = {"metadata": {"name": "a"}, "spec": {**_POD, **spec}}
    return "POST", "/api/v1/namespaces/default/pods?dryRun=All", _text(body), {}


def _quoted(text: str) -> str:
    return quote(text, safe="")


_PLACES: Final[Mapping[str, Callable[[str], Sent]]] = {
    "path: name": lambda text: ("GET", f"{CONFIG_MAPS}/{_quoted(text)}", None, {}),
    "path: namespace": lambda text: ("GET", f"/api/v1/namespaces/{_quoted(text)}/pods", None, {}),
    "path: group": lambda text: ("GET", f"/apis/{_quoted(text)}/v1/a", None, {}),
    "path": lambda text: ("GET", f"/{_quoted(text)}", None, {}),
    **{
        f"query: {name}": lambda text, name=name: _get(f"{name}={_quoted(text)}")  # type: ignore[misc]
        for name in (
            *(
                "labelSelector",
                "fieldSelector",
                "limit",
                "continue",
                "resourceVersion",
                "resourceVersionMatch",
                "timeout",
            ),
            *("pretty", "allowWatchBookmarks", "sendInitialEvents"),
        )
    },
    "query: a requirement": lambda text: _get(f"labelSelector=a+in+({_quoted(text)})"),
    "query: fieldManager": lambda text: (
        "POST",
        f"{CONFIG_MAPS}?dryRun=All&fieldManager={_quoted(text)}",
        _config_map(),
        {},
    ),
    "query: dryRun": lambda text: ("POST", f"{CONFIG_MAPS}?dryRun={_quoted(text)}&dryRun=All", _config_map(), {}),
    "metadata.name": lambda text: _post(_config_map(name=text)),
    "metadata.generateName": lambda text: _post(_config_map(generateName=text)),
    "metadata.namespace": lambda text: _post(_config_map(namespace=text)),
    "metadata.uid": lambda text: _post(_config_map(uid=text)),
    "metadata.resourceVersion": lambda text: (
        "PUT",
        f"{CONFIG_MAPS}/b",
        _config_map(name="b", resourceVersion=text),
        {},
    ),
    "metadata.creationTimestamp": lambda text: _post(_config_map(creationTimestamp=text)),
    "label, key": lambda text: _post(_config_map(labels={text: "a"})),
    "label, value": lambda text: _post(_config_map(labels={"a": text})),
    "annotation, key": lambda text: _post(_config_map(annotations={text: "a"})),
    "finalizer": lambda text: _post(_config_map(finalizers=[text])),
    "owner": lambda text: _post(
        _config_map(ownerReferences=[{"apiVersion": text, "kind": text, "name": text, "uid": text}])
    ),
    "managedFields": lambda text: _post(
        _config_map(managedFields=[{"manager": text, "operation": text, "fieldsV1": {text: {}}}])
    ),
    "apiVersion": lambda text: _post(_text({"apiVersion": text, "kind": "ConfigMap", "metadata": {"name": "a"}})),
    "kind": lambda text: _post(_text({"apiVersion": "v1", "kind": text, "metadata": {"name": "a"}})),
    "an unknown field": lambda text: _post(_text({"metadata": {"name": "a"}, text: text})),
    "a body": lambda text: _post(text.encode()),
    "a YAML scalar": lambda text: _post(f"metadata: {{name: a}}\ndata: {{a: {text}}}".encode(), _YAML),
    "a content type": lambda text: _post(_config_map(), {"Content-Type": f"application/{_quoted(text)}"}),
    "pod: image": lambda text: _pod(containers=[{"name": text, "image": text}]),
    "pod: quantity": lambda text: _pod(
        containers=[{"name": "a", "image": "a", "resources": {"limits": {"cpu": text}}}]
    ),
    "pod: environment": lambda text: _pod(
        containers=[{"name": "a", "image": "a", "env": [{"name": text, "value": text}]}]
    ),
    "pod: port": lambda text: _pod(
        containers=[{"name": "a", "image": "a", "ports": [{"containerPort": text, "name": text}]}]
    ),
    "pod: selector": lambda text: _pod(nodeSelector={text: text}, tolerations=[{"key": text, "operator": text}]),
    "merge patch": lambda text: ("PATCH", f"{CONFIG_MAPS}/b?dryRun=All", _text({"data": {text: text}}), _MERGE),
    "JSON patch": lambda text: (
        "PATCH",
        f"{CONFIG_MAPS}/b?dryRun=All",
        _text([{"op": "add", "path": f"/data/{text}", "value": text}]),
        _JSON_PATCH,
    ),
    "apply": lambda text: (
        "PATCH",
        f"{CONFIG_MAPS}/b?dryRun=All&force=true&fieldManager=a",
        _text({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {text: text}}),
        _APPLY,
    ),
    "Impersonate-User": lambda text: ("GET", CONFIG_MAPS, None, {"Impersonate-User": _quoted(text)}),
    "User-Agent": lambda text: ("GET", CONFIG_MAPS, None, {"User-Agent": _quoted(text)}),
    "Accept": lambda text: ("GET", CONFIG_MAPS, None, {"Accept": _quoted(text)}),
}
_SHOWN: Final = 40


def strings(full: bool) -> Report:
    """Each text at each place in full, every fortieth combination for CI."""
    step = 1 if full else 40
    with served() as server:
        sender = Sender(server.credentials)
        sender.send("POST", CONFIG_MAPS, _config_map(name="b"))
        combinations = [(place, text) for place in _PLACES.values() for text in NAUGHTY][::step]
        for place, text in combinations:
            sender.send(*place(text))
        lost = [*_lost(sender)]
        sender.close()
        problems = sender.problems[:_SHOWN] + lost + server.complaints()
    figures = {
        "texts, places": f"{len(NAUGHTY)}, {len(_PLACES)}",
        "requests": f"{sender.statuses.total():,}",
        "answers": counted([sender]),
    }
    return Report(figures, problems)


def _lost(sender: Sender) -> Iterator[str]:
    """Stores every text as a value, and names those that come back different."""
    data = {f"k{number}": text for number, text in enumerate(NAUGHTY)}
    body: dict[str, Any] = {"metadata": {"name": "values", "annotations": data}, "data": data}
    sender.send("POST", CONFIG_MAPS, _text(body))
    answer = sender.send("GET", f"{CONFIG_MAPS}/values")
    stored = json.loads(answer.body) if answer is not None else {}
    for key, text in data.items():
        for place, values in (
            ("data", stored.get("data", {})),
            ("annotation", stored.get("metadata", {}).get("annotations", {})),
        ):
            if values.get(key) != text:
                yield f"{place}: {text!r} comes back as {values.get(key)!r}"
