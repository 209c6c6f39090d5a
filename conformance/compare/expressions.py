"""Random CEL expressions over all functions, compiled, priced and evaluated by a real server and by another one.

    python -m conformance.compare.expressions --oracle URL --oracle-token T --server URL --token T
        [--seed N] [--batches N] [--objects N]

Each of `--batches` tries some dozens of expressions out in one definition (dryRun), prices those that compile below longer and
longer lists, and creates a definition with them that shows their values, or what goes wrong, of `--objects` objects. Prints
each kind of difference once. The group is `expressions.example.com`.
"""

import json
import re
import sys
import time
from typing import Any, Final

from conformance.compare.customresources import DEFINITIONS
from conformance.exchange import Answer, Client, comparing, difference
from conformance.random.expressions import SCHEMA, Expressions
from conformance.random.rules import Generator

GROUP: Final = "expressions.example.com"
_AT_ONCE: Final = 40
_RULE: Final = re.compile(r"x-kubernetes-validations\[(\d+)\]")
# A rule's number in its message, and the end of the rule's text that a definition's errors repeat.
_NUMBER: Final = re.compile(r"(?:: |'|^)(\d+): ")
_TYPE: Final = re.compile(r"selfType\d+")
_SOURCE: Final = '"OptionalOldSelf":null}: '
_LENGTHS: Final = (1000, 30_000, 1_000_000, 100_000_000)
# Upstream serves a definition a little later, and holds creations back after it was established.
_SETTLED: Final = 4.0

Rule = dict[str, Any]


def definition(plural: str, properties: dict[str, Any]) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    names = {"plural": plural, "kind": plural.capitalize()}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": {"name": f"{plural}.{GROUP}"}, "spec": spec}


def shown(number: int, expression: str, whole: bool) -> Rule:
    """Returns a rule that fails with the expression's value, or with its error; both contain the rule's number."""
    if whole:
        return {"rule": f"{expression} && {number} > 0" if number % 2 else expression}
    text = f"'{number}: %s'.format([{expression}])"
    return {"rule": f"{text} == 'never'", "messageExpression": text}


def _is_about(rule: Rule, number: re.Match[str], rules: list[Rule]) -> bool:
    if number.re is _RULE:
        return rules.index(rule) == int(number[1])
    return str(rule["rule"]).startswith(f"'{number[1]}: ")


def causes(answer: Answer) -> list[tuple[str, str]]:
    body = answer.get("body")
    found = body.get("details", {}).get("causes", ()) if isinstance(body, dict) else ()
    return [(cause.get("field", ""), cause.get("message", "")) for cause in found]


def _plain(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without the numbers that types are given by chance."""
    return [(field, _TYPE.sub("selfType", message)) for field, message in found]


class Comparison:
    """Sends requests to both servers and counts; prints each kind of difference once, with its rule."""

    def __init__(self, clients: tuple[Client, Client]) -> None:
        self._clients = clients
        self.answers = self.different = 0
        self._kinds: dict[str, int] = {}

    def send(self, request: dict[str, Any], rules: list[Rule], label: str) -> tuple[Answer, Answer]:
        expected, got = (client.send(request, []) for client in self._clients)
        self.answers += max(1, len(causes(expected)))
        sides = _plain(causes(expected)), _plain(causes(got))
        found = [(cause, "only there") for cause in sides[0] if cause not in sides[1]]
        found += [(cause, "only here") for cause in sides[1] if cause not in sides[0]]
        if bool(sides[0]) != bool(sides[1]) or not found:
            found = []
            other = difference(expected, got)
            if other and (sorted(sides[0]) != sorted(sides[1]) or not sides[0]):
                self._tell(label, request, None, other)
        for (field, message), where in found:
            number = _RULE.search(field) or _NUMBER.search(message)
            about = next((rule for rule in rules if number and _is_about(rule, number, rules)), None)
            self._tell(label, request, about, f"{where}: {field} {message.split(_SOURCE)[-1]}")
        return expected, got

    def _tell(self, label: str, request: dict[str, Any], about: Rule | None, found: str) -> None:
        self.different += 1
        kind = label + re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "N", found[:100])
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if self._kinds[kind] == 1:
            body = request.get("body", {})
            spec = "" if body.get("kind") in (None, "CustomResourceDefinition") else json.dumps(body["spec"])
            print(f"{label} {about and about['rule']}\n    {found[:900]}\n    {spec}", flush=True)


def batch(comparison: Comparison, expressions: Expressions, objects: Generator, plural: str, count: int) -> None:
    tried = [shown(i, expressions.of("bool" if i % 3 == 0 else ""), i % 3 == 0) for i in range(_AT_ONCE)]
    rules = _that_compile(comparison, tried)
    for length in _LENGTHS:
        for i in range(0, len(rules), 10):
            part = rules[i : i + 10]
            items = {**SCHEMA, "x-kubernetes-validations": part}
            body = definition("tries", {"list": {"type": "array", "maxItems": length, "items": items}})
            comparison.send(
                {"method": "POST", "path": f"{DEFINITIONS}?dryRun=All", "body": body}, part, f"price {length}"
            )
    if not rules:
        return
    body = definition(plural, {"spec": {**SCHEMA, "x-kubernetes-validations": rules}})
    comparison.send({"method": "POST", "path": DEFINITIONS, "body": body}, rules, "create")
    time.sleep(_SETTLED)
    path = f"/apis/{GROUP}/v1/namespaces/default/{plural}?dryRun=All"
    for i in range(count):
        obj = {
            "apiVersion": f"{GROUP}/v1",
            "kind": plural.capitalize(),
            "metadata": {"name": f"o{i}"},
            "spec": objects.value(),
        }
        comparison.send({"method": "POST", "path": path, "body": obj}, rules, "evaluate")
    comparison.send({"method": "DELETE", "path": f"{DEFINITIONS}/{plural}.{GROUP}"}, rules, "delete")


def _that_compile(comparison: Comparison, rules: list[Rule]) -> list[Rule]:
    """The rules that neither server refuses."""
    while rules:
        body = definition("tries", {"spec": {**SCHEMA, "x-kubernetes-validations": rules}})
        answers = comparison.send(
            {"method": "POST", "path": f"{DEFINITIONS}?dryRun=All", "body": body}, rules, "compile"
        )
        refused = {int(found[1]) for answer in answers for field, _ in causes(answer) if (found := _RULE.search(field))}
        if not refused:
            return rules if all(answer["status"] == 201 for answer in answers) else []
        rules = [rule for i, rule in enumerate(rules) if i not in refused]
    return []


def main() -> int:
    arguments = comparing(__doc__, batches=5, objects=8).parse_args()
    clients = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    comparison = Comparison(clients)
    expressions, objects = Expressions(arguments.seed), Generator(arguments.seed)
    for number in range(arguments.batches):
        plural = f"e{arguments.seed}x{number}t{int(time.time()) % 100_000}s"
        batch(comparison, expressions, objects, plural, arguments.objects)
    print(f"{comparison.answers} answers, {comparison.different} different in {len(comparison._kinds)} ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
