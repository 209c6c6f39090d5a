"""Requests for every operation of the server's own OpenAPI documents, made from their schemas by chance."""

import json
import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from msgspec import Struct

from conformance.robustness.guarantees.guarantee import Report
from conformance.robustness.guarantees.requests.sender import Sender, counted
from conformance.robustness.guarantees.requests.values import Values
from conformance.robustness.served import Served, served

_METHODS: Final = ("get", "put", "post", "delete", "patch")
_CLIENTS: Final = 12
_JSON: Final = "application/json"
_PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_APPLY: Final = "application/apply-patch+yaml"
# Proxied requests fail as their backends do.
_PROXIES: Final = ("/proxy", "/exec", "/attach", "/portforward", "/log")
# Watches would last for half an hour.
_SHORT: Final = {"timeoutSeconds": "1"}
_SHOWN: Final = 40


class Operation(Struct, frozen=True):
    """`parameters` and `body` are of OpenAPI; `statuses` are those that the document has."""

    method: str
    path: str
    parameters: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any] | None
    kind: Mapping[str, str]
    statuses: frozenset[str]
    schemas: Mapping[str, Mapping[str, Any]]


def operations(full: bool) -> Report:
    """All operations, 40 requests for each in full; 60 operations with 4 requests each for CI."""
    with served() as server:
        known = list(_known(server))
        chosen = known if full else random.Random(1).sample(known, 60)
        senders = [Sender(server.credentials) for _ in range(_CLIENTS)]
        unknown: Counter[str] = Counter()
        threads = [
            threading.Thread(target=_ask, args=(sender, chosen[number::_CLIENTS], 40 if full else 4, number, unknown))
            for number, sender in enumerate(senders)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        problems = [problem for sender in senders for problem in sender.problems][:_SHOWN] + server.complaints()
    problems += [f"{text} is not documented ({count} times)" for text, count in unknown.items()]
    figures = {
        "operations": f"{len(chosen):,} of {len(known):,}",
        "requests": f"{sum(sum(sender.statuses.values()) for sender in senders):,}",
        "answers": counted(senders),
    }
    return Report(figures, problems)


def _known(server: Served) -> list[Operation]:
    sender = Sender(server.credentials)
    found = []
    for document in _read(sender, "/openapi/v3")["paths"].values():
        content = _read(sender, document["serverRelativeURL"])
        schemas = content.get("components", {}).get("schemas", {})
        for path, item in content["paths"].items():
            for method in _METHODS:
                if method not in item:
                    continue
                operation = item[method]
                bodies = operation.get("requestBody", {}).get("content", {})
                found.append(
                    Operation(
                        method.upper(),
                        path,
                        [*item.get("parameters", ()), *operation.get("parameters", ())],
                        next((body.get("schema", {}) for body in bodies.values()), None),
                        operation.get("x-kubernetes-group-version-kind", {}),
                        frozenset(operation["responses"]),
                        schemas,
                    )
                )
    sender.close()
    return found


def _read(sender: Sender, target: str) -> Any:
    answer = sender.send("GET", target)
    if answer is None or answer.status != 200:
        raise RuntimeError(f"{target}: {answer}")
    return json.loads(answer.body)


def _ask(sender: Sender, chosen: Sequence[Operation], count: int, seed: int, unknown: Counter[str]) -> None:
    chance = random.Random(seed)
    values = Values(chance)
    for number in range(count):
        for operation in chosen:
            target = _target(operation, values)
            body, content_type = _body(operation, values, number)
            answer = sender.send(operation.method, target, body, {"Content-Type": content_type})
            if answer is None or any(part in operation.path for part in _PROXIES):
                continue
            if answer.status < 300 and str(answer.status) not in operation.statuses:
                unknown[f"{operation.method} {operation.path}: {answer.status}"] += 1
    sender.close()


def _target(operation: Operation, values: Values) -> str:
    chance, path, query = values.chance, operation.path, dict[str, str]()
    for parameter in operation.parameters:
        name = parameter["name"]
        if parameter["in"] == "path":
            text = "default" if name == "namespace" else "a"
            if chance.random() < 0.05:
                text = values.text()
            path = path.replace(f"{{{name}}}", quote(text, safe=""))
        elif parameter["in"] == "query" and chance.random() < 0.15:
            value = values.of(parameter.get("schema", {}), {}) if chance.random() < 0.8 else values.text()
            query[name] = json.dumps(value) if not isinstance(value, str) else value
    if operation.method == "GET":
        query |= _SHORT
    return f"{path}?{urlencode(query)}" if query else path


def _body(operation: Operation, values: Values, number: int) -> tuple[bytes | None, str]:
    chance = values.chance
    if operation.method == "PATCH":
        content_type = chance.choice((*_PATCHES, _APPLY))
        if content_type == _PATCHES[0]:
            return json.dumps(_json_patch(values)).encode(), content_type
        return json.dumps(_object(operation, values, {"$ref": _schema_name(operation)}, number)).encode(), content_type
    if operation.body is None:
        return None, _JSON
    return json.dumps(_object(operation, values, operation.body, number)).encode(), _JSON


def _object(operation: Operation, values: Values, schema: Mapping[str, Any], number: int) -> Any:
    """Returns an object whose name and kind mostly fit the path."""
    obj = values.of(schema, operation.schemas)
    if isinstance(obj, dict) and operation.kind and operation.method != "DELETE" and values.chance.random() < 0.9:
        group, version = operation.kind["group"], operation.kind["version"]
        obj["apiVersion"] = f"{group}/{version}" if group else version
        obj["kind"] = operation.kind["kind"]
        metadata = obj.get("metadata")
        obj["metadata"] = {"name": "a"} if number % 2 or not isinstance(metadata, dict) else {**metadata, "name": "a"}
    return obj


def _schema_name(operation: Operation) -> str:
    """Returns the name of the schema of the operation's kind, whose patches have no schema of their own."""
    for name, schema in operation.schemas.items():
        if dict(operation.kind) in schema.get("x-kubernetes-group-version-kind", ()):
            return name
    return ""


def _json_patch(values: Values) -> list[dict[str, Any]]:
    pick = values.chance.choice
    places = (
        "",
        "/",
        "/metadata",
        "/metadata/labels/a",
        "/spec",
        "/spec/-",
        "/data/a",
        "/metadata/finalizers/0",
        "/a~1b",
        "/a~2",
        "x",
    )
    return [
        {
            "op": pick(("add", "remove", "replace", "move", "copy", "test", "x")),
            "path": pick(places),
            "from": pick(places),
            "value": values.text(),
        }
        for _ in range(pick((0, 1, 2, 5)))
    ]
