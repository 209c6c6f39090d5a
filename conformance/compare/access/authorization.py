"""Random roles, bindings, pods and questions about them, sent to a real server and to another one: prints what differs.

    python -m conformance.compare.access.authorization --oracle URL --oracle-token T --server URL --token T [--seed N] [--count N]

Both servers need `--authorization-mode=Node,RBAC` and `--enable-admission-plugins=NodeRestriction`, and should be fresh. Each of `count`
rounds writes some roles and bindings as admin, waits until the real server's informers have seen them, and asks as users and service
accounts (by impersonation): requests, reviews of every kind, and writes of roles and bindings by every verb, which may give
away only what their writer has. `--nodes N` rounds do so with pods and volumes, and ask as nodes. `--questions N` a round.
"""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from conformance.exchange import Answer, Client, comparing
from conformance.free_values import plain
from conformance.random.nodes import Nodes
from conformance.random.roles import GROUP, NAMESPACES, RBAC, WRITERS, Request, Roles

_SEEN: Final = 0.4  # seconds
_ALLOWED: Final = re.compile(r'RBAC: allowed by (\w+) ("[^"]*")')
_UID: Final = re.compile(r"\$\{uid\.([\w.]+)\}")


class Pair:
    """The real server and the other one, asked the same."""

    def __init__(self, oracle: Client, other: Client) -> None:
        self._clients = (oracle, other)
        self._uids: tuple[dict[str, str], ...] = ({}, {})
        self.kinds: Counter[str] = Counter()
        self.asked = 0

    def compare(self, request: Request) -> None:
        self.asked += 1
        text = json.dumps(request)
        answers = []
        for client, uids in zip(self._clients, self._uids, strict=True):
            answers.append(client.send(json.loads(_filled(text, uids)), []))
        expected, got = (_reason(answer) for answer in answers)
        if found := _ALLOWED.match(expected):
            # By which of several bindings of a kind is chance.
            kind, name = found.groups()
            same = expected == got or ((_ALLOWED.match(got) or "  ")[1] == kind and f" {name} " not in got)
            if same:
                for answer in answers:
                    answer["body"]["status"]["reason"] = ""
        expected, got = map(shown, answers)
        told_off = expected.startswith("500") and got.startswith("4")  # bad input is the client's fault
        if expected != got and not told_off:
            kind = re.sub(r'"[^"]*"|\d+', "_", f"{request['method']} {expected[:70]} | {got[:70]}")
            self.kinds[kind] += 1
            if self.kinds[kind] == 1:
                print(f"{text}\n    {expected[:900]}\n    {got[:900]}", flush=True)

    def compare_all(self, requests: Iterable[Request]) -> None:
        for request in requests:
            self.compare(request)

    def learn_uids(self) -> None:
        """Learns the UIDs of the objects that later requests refer to."""
        for client, uids in zip(self._clients, self._uids, strict=True):
            uids.clear()
            for path in ("/api/v1/nodes", *(f"/api/v1/namespaces/{name}/pods" for name in NAMESPACES)):
                for obj in client.send({"method": "GET", "path": path}, [])["body"].get("items") or ():
                    meta = obj["metadata"]
                    uids[".".join(filter(None, (meta.get("namespace"), meta["name"])))] = meta["uid"]


def _filled(text: str, uids: Mapping[str, str]) -> str:
    return _UID.sub(lambda found: uids.get(found[1], ""), text)


def _reason(answer: Answer) -> str:
    body = answer.get("body")
    status = body.get("status") if isinstance(body, dict) else None
    return str(status.get("reason", "")) if isinstance(status, dict) else ""


def shown(answer: Answer) -> str:
    """Returns the comparable part of an answer: for allowed requests only that they are allowed, for rejected ones the Status, for reviews
    everything except the order of several roles, which a real server leaves to chance.
    """
    body = answer.get("body")
    if not isinstance(body, dict):
        return f"{answer['status']} {str(answer.get('text', ''))[:60] if answer['status'] >= 400 else ''}"
    if body.get("kind") == "Status":
        details = {name: value for name, value in (body.get("details") or {}).items() if name != "uid"}
        told = f"{_ordered(body.get('message', ''))} {json.dumps(details, sort_keys=True)}"
        return f"{answer['status']} {plain(told)}"
    if "Review" in str(body.get("kind")):
        status = body.get("status", {})
        for rules in ("resourceRules", "nonResourceRules"):
            if rules in status:
                status[rules] = sorted(json.dumps(rule, sort_keys=True) for rule in status[rules])
        status = {name: _ordered(value) if isinstance(value, str) else value for name, value in status.items()}
        return f"{answer['status']} {json.dumps(status, sort_keys=True)}"
    if str(body.get("apiVersion", "")).startswith(GROUP):
        kept = {name: body.get(name) for name in ("kind", "rules", "subjects", "roleRef", "aggregationRule")}
        return f"{answer['status']} {json.dumps(kept, sort_keys=True)}"
    return f"{answer['status']} {body.get('kind')}"


def _ordered(text: str) -> str:
    """Several errors, in any order, one by one."""
    return re.sub(r"\[((?:[^\[\]]*not found(?:, )?)+)\]", lambda found: str(sorted(found[1].split(", "))), text)


def _with_roles(generator: Roles, pair: Pair, rounds: int, questions: int) -> None:
    writer = {"verbs": ["get", "list", "create", "update", "patch", "delete", "deletecollection"]}
    rule: dict[str, Any] = {**writer, "apiGroups": [GROUP], "resources": ["*"]}
    pair.compare(
        {"method": "POST", "path": f"{RBAC}/clusterroles", "body": {"metadata": {"name": "writer"}, "rules": [rule]}}
    )
    everyone = [
        *({"kind": "User", "apiGroup": GROUP, "name": name} for name in WRITERS),
        {"kind": "Group", "apiGroup": GROUP, "name": "ops"},
    ]
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "writer"}
    body = {"metadata": {"name": "writer"}, "roleRef": reference, "subjects": everyone}
    pair.compare({"method": "POST", "path": f"{RBAC}/clusterrolebindings", "body": body})
    for _ in range(rounds):
        pair.compare_all(generator.preparation())
        time.sleep(_SEEN)
        pair.compare_all(generator.question() for _ in range(questions))
        for _ in range(questions // 4):
            pair.compare(generator.attempt())
            time.sleep(_SEEN / 8)


def _with_nodes(generator: Nodes, pair: Pair, rounds: int, questions: int) -> None:
    pair.compare_all(generator.beginning())
    for _ in range(rounds):
        pair.compare_all(generator.preparation())
        pair.learn_uids()
        time.sleep(_SEEN)
        pair.compare_all(generator.question() for _ in range(questions))


def main() -> int:
    arguments = comparing(__doc__, count=20, nodes=0, questions=100).parse_args()
    pair = Pair(Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token))
    for namespace in NAMESPACES:
        pair.compare({"method": "POST", "path": "/api/v1/namespaces", "body": {"metadata": {"name": namespace}}})
    if arguments.nodes:
        _with_nodes(Nodes(arguments.seed), pair, arguments.nodes, arguments.questions)
    if arguments.count:
        _with_roles(Roles(arguments.seed), pair, arguments.count, arguments.questions)
    print(f"{pair.asked} requests, {pair.kinds.total()} differ in {len(pair.kinds)} ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
