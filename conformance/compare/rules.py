"""Random rules of custom resources, and random objects against them, sent to a real server and to another one.

    python -m conformance.compare.rules --oracle URL --oracle-token T --server URL --token T
        [--seed N] [--rules N] [--rounds N] [--objects N]

First `--rules` definitions with a rule each are tried out (dryRun). Then in each of `--rounds` a definition is created with
rules that compile, and `--objects` objects are created and changed. Prints each difference. The group is
`random-rules.example.com`.
"""

import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from conformance.exchange import Answer, Client, comparing, difference
from conformance.random.rules import SCHEMA, Generator

Request = dict[str, Any]
Send = Callable[[Request], tuple[Answer, Answer]]

GROUP: Final = "random-rules.example.com"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_AT_ONCE: Final = 12
_REASONS: Final = (None, None, "FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")


def definition(plural: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {**SCHEMA, "x-kubernetes-validations": rules}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": plural.capitalize()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def rule_of(generator: Generator) -> dict[str, Any]:
    rule = {"rule": generator.rule()}
    if generator.pick(0, 0, 1):
        rule["messageExpression"] = generator.expression("string")
    if generator.pick(0, 0, 1):
        rule["message"] = generator.pick("no", " spaces ", "é <&>")
    if reason := generator.pick(*_REASONS):
        rule["reason"] = reason
    if generator.pick(0, 0, 0, 1):
        rule["fieldPath"] = generator.pick(".i", ".o.x", ".m['a']", ".m.b", ".zz", ".is[0]", "i")
    if generator.pick(0, 0, 0, 1):
        rule["rule"] = rule["rule"].replace("self.", "oldSelf.", 1)
    return rule


def main() -> int:
    arguments = comparing(__doc__, rules=300, rounds=3, objects=60).parse_args()
    clients = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    counts = {"requests": 0, "different": 0}

    def send(request: Request) -> tuple[Answer, Answer]:
        expected, got = clients[0].send(request, []), clients[1].send(request, [])
        counts["requests"] += 1
        if found := difference(expected, got):
            counts["different"] += 1
            print(f"{request['method']} {request['path']} {json.dumps(request.get('body'))[:3000]}\n    {found}")
        return expected, got

    generator = Generator(arguments.seed)
    good: list[dict[str, Any]] = []
    for _ in range(arguments.rules):
        rule = rule_of(generator)
        answers = send({"method": "POST", "path": f"{DEFINITIONS}?dryRun=All", "body": definition("tries", [rule])})
        if all(answer["status"] == 201 for answer in answers):
            good.append(rule)
    chance = random.Random(arguments.seed)
    for number in range(arguments.rounds):
        rules = chance.sample(good, min(_AT_ONCE, len(good)))
        round_of(generator, send, f"r{arguments.seed}x{number}s", rules, arguments.objects)
    print(f"{counts['requests']} requests, {counts['different']} answered differently")
    return 0


def round_of(generator: Generator, send: Send, plural: str, rules: list[dict[str, Any]], objects: int) -> None:
    """Creates a definition, some objects, changes each once, and removes all."""
    send({"method": "POST", "path": DEFINITIONS, "body": definition(plural, rules)})
    time.sleep(4)  # upstream holds creations back for two seconds after a definition is established
    path = f"/apis/{GROUP}/v1/namespaces/default/{plural}"
    for i in range(objects):
        body = {"apiVersion": f"{GROUP}/v1", "kind": plural.capitalize(), "metadata": {"name": f"o{i}"}}
        send({"method": "POST", "path": path, "body": {**body, "spec": generator.value()}})
        change = {"spec": generator.value()}
        send({"method": "PATCH", "path": f"{path}/o{i}", "type": "application/merge-patch+json", "body": change})
    send({"method": "DELETE", "path": f"{DEFINITIONS}/{plural}.{GROUP}"})


if __name__ == "__main__":
    sys.exit(main())
