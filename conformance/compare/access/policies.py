"""Random admission policies with bindings, params and variables, and random writes under them, at a real server and another one.

    python -m conformance.compare.access.policies --oracle URL --oracle-token T --server URL --token T
        [--seed N] [--rounds N] [--cases N]

In each round `--cases` policies are written with their bindings (and broken ones tried), and when the real server's informers have
seen them, objects of many kinds are created, changed and deleted under each. Prints each kind of difference once. Which of several
params speaks first is left to chance upstream: such requests are sent again until both say the same.
The group of the custom resources is `policies.example.com`, namespaces begin with `dp`.
"""

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import Final

from conformance.compare.requests import Report
from conformance.exchange import Answer, Client, comparing, difference
from conformance.random.policies import REGISTRATION, Case, Generator, Request
from conformance.random.policy_targets import PARAM_KINDS, Spec, definitions

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
# What the real server needs to find new kinds for params, and their types for mutations.
_KINDS_KNOWN: Final = 40.0  # seconds
_AGAIN: Final = 6
_TRIES: Final = 8
_PATIENCE: Final = 60.0  # seconds
_ENOUGH: Final = 4.0  # seconds
_PROBED: Final = "/api/v1/namespaces/default/configmaps?dryRun=All"


class Both:
    """Two servers that are sent the same at the same time."""

    def __init__(self, oracle: Client, server: Client, report: Report) -> None:
        self._clients = (oracle, server)
        self._pool = ThreadPoolExecutor()
        self._report = report

    def send(self, request: Request, earlier: tuple[list[Answer], list[Answer]] = ([], [])) -> tuple[Answer, Answer]:
        answers = self._pool.map(lambda client, known: _sent(client, request, known), self._clients, earlier)
        expected, got = answers
        return expected, got

    def compare(
        self, label: str, request: Request, earlier: tuple[list[Answer], list[Answer]] = ([], []), *, again: int = 0
    ) -> tuple[Answer, Answer]:
        """Sends a request to both servers and compares the answers, except where the real server drops the connection because it panics."""
        expected, got = self.send(request, earlier)
        if not expected["status"] and got["status"]:
            return expected, got
        for _ in range(again):
            if not difference(expected, got) or expected["status"] < 400 or got["status"] < 400:
                break
            expected, got = self.send(request, earlier)
        self._report.judge(label, request, expected, got)
        return expected, got


def _sent(client: Client, request: Request, earlier: list[Answer]) -> Answer:
    try:
        return client.send(request, earlier)
    except (HTTPException, ConnectionError):
        return {"status": 0}


def prepare(both: Both) -> None:
    """Creates the definitions of the custom resources, and a user who has some rights but not all."""
    statuses = [
        both.send({"method": "POST", "path": _DEFINITIONS, "body": body})[0]["status"] for body in definitions()
    ]
    subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
    for role in ("edit", "policies-jane"):
        reference = {"kind": "ClusterRole", "name": role, "apiGroup": "rbac.authorization.k8s.io"}
        body = {"metadata": {"name": f"policies-{role}"}, "roleRef": reference, "subjects": [subject]}
        both.send({"method": "POST", "path": f"{_RBAC}/clusterrolebindings", "body": body})
    rules = [{"apiGroups": ["policies.example.com"], "resources": ["*"], "verbs": ["*"]}]
    both.send(
        {
            "method": "POST",
            "path": f"{_RBAC}/clusterroles",
            "body": {"metadata": {"name": "policies-jane"}, "rules": rules},
        }
    )
    _clean(both)
    for number, (version, kind) in enumerate(sorted(set(PARAM_KINDS))):
        _keep(both, f"policies-keep-{number}", version, kind)
    if 201 in statuses:
        time.sleep(_KINDS_KNOWN)


def _clean(both: Both) -> None:
    """Takes away what a run that was stopped has left."""
    for sort in ("mutatingadmissionpolic", "validatingadmissionpolic"):
        for path in (f"{REGISTRATION}/{sort}ybindings", f"{REGISTRATION}/{sort}ies"):
            for answer in both.send({"method": "GET", "path": path}):
                for name in (item["metadata"]["name"] for item in answer["body"]["items"]):
                    if name.startswith("dp"):
                        both.send({"method": "DELETE", "path": f"{path}/{name}"})


def _keep(both: Both, name: str, version: str, kind: str) -> None:
    """A policy that concerns nothing: upstream forgets to follow a built-in kind of params once no policy has had any for a while."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["bindings"]}
    spec = {
        "paramKind": {"apiVersion": version, "kind": kind},
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "true"}],
    }
    reference = {"name": "none", "parameterNotFoundAction": "Allow"}
    binding = {"policyName": name, "validationActions": ["Deny"], "paramRef": reference}
    for path, body in (("validatingadmissionpolicies", spec), ("validatingadmissionpolicybindings", binding)):
        both.send(
            {"method": "POST", "path": f"{REGISTRATION}/{path}", "body": {"metadata": {"name": name}, "spec": body}}
        )


def written(both: Both, generator: Generator, name: str) -> Case | None:
    """A case whose policy both have taken, after others that they may have refused."""
    for attempt in range(_TRIES):
        case = generator.case(name)
        if both.send({"method": "GET", "path": f"/api/v1/namespaces/{name}"})[0]["status"] == 404:
            labels = {"case": name, **generator.pick({}, {"team": "blue"})}
            meta = {"name": name, "labels": labels, **generator.pick({}, {"annotations": {"note": "x"}})}
            both.send({"method": "POST", "path": "/api/v1/namespaces", "body": {"metadata": meta}})
        policies, bindings = (f"{REGISTRATION}/{resource}" for resource in case.resources)
        for spec, path in zip(generator.broken(case), (policies, bindings), strict=True):
            tried = {"metadata": {"name": f"{name}.broken"}, "spec": spec}
            both.compare(f"{name} broken", {"method": "POST", "path": f"{path}?dryRun=All", "body": tried})
        create = {"method": "POST", "path": policies, "body": {"metadata": {"name": name}, "spec": case.policy}}
        answers = both.compare(f"{name} policy {attempt}", create)
        if any(answer["status"] != 201 for answer in answers):
            continue
        _change(both, generator, case, answers)
        for request in generator.params(case):
            both.send(request)
        create = {"method": "POST", "path": bindings, "body": {"metadata": {"name": name}, "spec": case.binding}}
        both.compare(f"{name} binding", create)
        return case
    return None


def _change(both: Both, generator: Generator, case: Case, answers: tuple[Answer, Answer]) -> None:
    """Tries to make a stored policy another one, which may be broken."""
    spec, _ = generator.broken(case)
    path = f"{REGISTRATION}/{case.resources[0]}/{case.name}?dryRun=All"
    meta = {"name": case.name, "resourceVersion": "${0.metadata.resourceVersion}"}
    earlier = ([answers[0]], [answers[1]])
    both.compare(
        f"{case.name} update", {"method": "PUT", "path": path, "body": {"metadata": meta, "spec": spec}}, earlier
    )


def probes(name: str) -> Iterator[tuple[str, str, Spec, Spec]]:
    """The last policies of a round, with where they are stored, their names and bindings: when they are in force, so are the
    others."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    refuses = "[JSONPatch{op: 'remove', path: '/nope'}]"
    mutations = [{"patchType": "JSONPatch", "jsonPatch": {"expression": refuses}}]
    rules: dict[str, Spec] = {
        "validatingadmissionpolic": {"validations": [{"expression": "false"}]},
        "mutatingadmissionpolic": {"mutations": mutations, "reinvocationPolicy": "Never"},
    }
    for sort, spec in rules.items():
        own = f"{name}-{sort[0]}"
        constraints = {"resourceRules": [{**rule, "resourceNames": [own]}]}
        actions = {"validationActions": ["Deny"]} if "validations" in spec else {}
        yield sort, own, {**spec, "matchConstraints": constraints}, {"policyName": own, **actions}


def wait_for(both: Both, name: str) -> None:
    """Waits until the real server's refusals name the probes; where other policies refuse them as well, for a moment."""
    for sort, own, policy, binding in probes(name):
        paths = {f"{REGISTRATION}/{sort}ies": policy, f"{REGISTRATION}/{sort}ybindings": binding}
        for path, spec in paths.items():
            both.send({"method": "POST", "path": path, "body": {"metadata": {"name": own}, "spec": spec}})
        probe = {"method": "POST", "path": _PROBED, "body": {"metadata": {"name": own}}}
        start = time.monotonic()
        while time.monotonic() < start + _PATIENCE:
            body = both.send(probe)[0].get("body") or {}
            if f"'{own}'" in body.get("message", "") or (body.get("code") and time.monotonic() > start + _ENOUGH):
                break
            time.sleep(0.05)
        for path in reversed(paths):
            both.send({"method": "DELETE", "path": f"{path}/{own}"})
    time.sleep(0.3)


def run_round(both: Both, generator: Generator, name: str, count: int) -> None:
    cases = [case for i in range(count) if (case := written(both, generator, f"{name}-{i}")) is not None]
    wait_for(both, f"{name}-probe")
    shown: set[str] = set()
    for case in cases:
        again = _AGAIN if "selector" in case.binding.get("paramRef", {}) else 0
        for step, request in enumerate(generator.requests(case)):
            expected, got = both.compare(f"{case.name}[{step}]", request, again=again)
            if expected["status"] and difference(expected, got) and case.name not in shown:
                shown.add(case.name)
                kind = case.resources[0]
                print(f"  {case.name} {kind}: {json.dumps(case.policy)} {json.dumps(case.binding)}", flush=True)
    for case in cases:
        for path in case.resources[::-1]:
            both.send({"method": "DELETE", "path": f"{REGISTRATION}/{path}/{case.name}"})


def main() -> int:
    arguments = comparing(__doc__, rounds=3, cases=16).parse_args()
    report = Report()
    clients = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    both = Both(*clients, report)
    prepare(both)
    for number in range(arguments.rounds):
        generator = Generator(f"{arguments.seed}/{number}")
        run_round(both, generator, f"dp{arguments.seed}r{number}", arguments.cases)
    print(report.summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())
