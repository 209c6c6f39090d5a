"""Compares the results of type checking in the status of random ValidatingAdmissionPolicies, of a real cluster and of another server.

    python -m conformance.compare.access.policy_types --oracle URL --oracle-token T --server URL --token T [--seed N] [--count N]

Beside the real API server a kube-controller-manager must run, and the other server needs
`--controllers=validatingadmissionpolicy-status-controller`. Prints each status that differs; the number behind a type's name is a
moment upstream, and not compared.
"""

import json
import re
import sys
import time
from typing import Any, Final

from conformance.compare.access.policies import Both, prepare
from conformance.compare.requests import Report
from conformance.exchange import Client, comparing
from conformance.random.policies import REGISTRATION, Generator, Request
from conformance.random.policy_targets import TARGETS, Spec

_POLICIES: Final = f"{REGISTRATION}/validatingadmissionpolicies"
_PATIENCE: Final = 60.0  # seconds
_NUMBER: Final = re.compile(r"([A-Za-z]+)\d{3,9}(?=[.,)' ]|$)", re.MULTILINE)


def policy(generator: Generator, name: str) -> Spec:
    """A case's policy, over more kinds than one case has."""
    case = generator.case(name)
    while case.mutates:
        case = generator.case(name)
    rules = case.policy["matchConstraints"]["resourceRules"]
    for target in (generator.pick(*TARGETS) for _ in range(generator.pick(0, 0, 1, 3))):
        rule = {
            "apiGroups": [target.group],
            "apiVersions": [target.version.rpartition("/")[2]],
            "resources": [target.resource],
        }
        rules.append({**rule, "operations": ["CREATE"]})
    return case.policy


def status(client: Client, name: str) -> Any:
    """When it has been written."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        body = client.send({"method": "GET", "path": f"{_POLICIES}/{name}"}, []).get("body") or {}
        if (body.get("status") or {}).get("observedGeneration", 0) == (body.get("metadata") or {}).get(
            "generation", -1
        ):
            fields = body["metadata"].get("managedFields") or []
            owned = [{key: value for key, value in entry.items() if key != "time"} for entry in fields]
            return json.loads(_NUMBER.sub(r"\1N", json.dumps([body["status"], owned])))
        time.sleep(0.05)
    return "never written"


def main() -> int:
    arguments = comparing(__doc__, count=100).parse_args()
    clients = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    prepare(Both(*clients, Report()))
    generator, different, count = Generator(f"types/{arguments.seed}"), 0, 0
    for number in range(arguments.count):
        name = f"dpt{arguments.seed}-{number}"
        create: Request = {
            "method": "POST",
            "path": _POLICIES,
            "body": {"metadata": {"name": name}, "spec": policy(generator, name)},
        }
        if any(client.send(create, [])["status"] != 201 for client in clients):
            continue
        expected, got = (status(client, name) for client in clients)
        count += 1
        if expected != got:
            different += 1
            print(f"{name} {json.dumps(create['body']['spec'])}\n  {json.dumps(expected)}\n  {json.dumps(got)}")
        for client in clients:
            client.send({"method": "DELETE", "path": f"{_POLICIES}/{name}"}, [])
    print(f"{count} policies, {different} with another status")
    return 0


if __name__ == "__main__":
    sys.exit(main())
