"""Random files of authorization, most of them wrong: AuthorizationConfigurations and ABAC policies, out of one random source.

Each function returns flags and files, by name; `{folder}` stands in both for the folder that the files are in.
"""

import json
import random
from typing import Any, Final

import yaml

Case = tuple[list[str], dict[str, str]]  # flags, files

_MODES: Final = ("AlwaysAllow", "AlwaysDeny", "ABAC", "RBAC", "Node")
_ODD: Final[tuple[Any, ...]] = (None, "", "x", 5, 1.5, True, [], {}, [None], [1], ["x"], [{}], {"x": 1}, "5m", -1)
_EXPRESSIONS: Final = (
    "request.user == 'jane'",
    "has(request.resourceAttributes)",
    "has(request.resourceAttributes) && request.resourceAttributes.namespace == 'x'",
    "request.resourceAttributes.verb in ['get', 'list']",
    "!('system:serviceaccounts:kube-system' in request.groups)",
    "request.groups.exists(g, g.startsWith('x'))",
    "request.nonResourceAttributes.path == '/x'",
    "has(request.nonResourceAttributes.path)",
    "request.extra['a'][0] == 'b'",
    "request.extra.a == ['b']",
    "request.resourceAttributes.fieldSelector.requirements.exists(r, r.key == 'a')",
    "has(request.resourceAttributes.labelSelector)",
    "request.resourceAttributes.labelSelector.requirements[0].operator == 'In'",
    "request.resourceAttributes.fieldSelector.rawSelector == ''",
    "request.uid.size() > 0",
    "request.group == ''",
    "request.resourceAttributes.nope",
    "request.nope",
    "request",
    "user == 'x'",
    "object.x",
    "authorizer",
    "true",
    "false",
    "1",
    "'x'",
    "null",
    "[true]",
    "dyn(true)",
    "request.user",
    "request.user ==",
    "request.user = 'x'",
    "",
    " ",
    "\n",
    "true // comment",
    "request.user.matches('(')",
    "request.user.matches('^a.*')",
    "request.user.find('a') == 'a'",
    "quantity('1').isInteger()",
    "ip('1.2.3.4').family() == 4",
    "url('https://x').getHost() == 'x'",
    "isIP(request.user)",
    "request.?user.hasValue()",
    "request.resourceAttributes.?name.orValue('x') == 'x'",
    "type(request) == string",
    "request.user.split(',').size() == 1",
    "duration('1s') > duration('0s')",
    "timestamp('2020-01-01T00:00:00Z').getFullYear() == 2020",
    "[1, 2].all(x, x > 0)",
    "sets.contains(request.groups, ['a'])",
    "request.groups == []",
    "1 / 0 == 1",
    "request.user + 1 == 'x'",
    "size(request.groups) > 0u",
    "request.resourceAttributes == null",
    "SubjectAccessReviewSpec{}.user == ''",
    "cel.bind(u, request.user, u == 'x')",
    "request.groups.map(g, g).size() > 0",
    "request.groups.isSorted()",
    "request.user.lowerAscii() == 'x'",
    "'x'.format([1]) == 'x'",
    "request.groups.all(a, request.groups.all(b, request.groups.all(c, request.groups.all(d, a != d))))",
    "x" * 40,
)


def pick(rng: random.Random, *choices: Any) -> Any:
    """Returns one of the choices."""
    return rng.choice(choices)


def _webhook(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        "timeout": "3s",
        "subjectAccessReviewVersion": pick(rng, "v1", "v1beta1"),
        "failurePolicy": pick(rng, "NoOpinion", "Deny"),
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "{folder}/hook.kubeconfig"},
    }
    if rng.random() < 0.5:
        found["matchConditionSubjectAccessReviewVersion"] = "v1"
        found["matchConditions"] = [{"expression": rng.choice(_EXPRESSIONS)} for _ in range(rng.randint(1, 3))]
    return found


def _broken_webhook(rng: random.Random, webhook: dict[str, Any]) -> None:
    """Makes one change to the webhook's configuration."""
    match rng.randrange(11):
        case 0:
            webhook["timeout"] = pick(
                rng, "0s", "30s", "31s", "-1s", "1", "", "x", "1h", "1.5s", "30.0001s", 5, None, "1ns"
            )
        case 1:
            name = pick(rng, "authorizedTTL", "unauthorizedTTL")
            webhook[name] = pick(rng, "0s", "-1s", "5m", "1h1m1.5s", "x", "1", 5, None, "-1ns", "1us")
        case 2:
            name = pick(rng, "cacheAuthorizedRequests", "cacheUnauthorizedRequests")
            webhook[name] = pick(rng, True, False, "false", 0, None)
        case 3:
            webhook["subjectAccessReviewVersion"] = pick(rng, "", "v1", "v2", "V1", "v1beta1", None, 1)
        case 4:
            webhook["matchConditionSubjectAccessReviewVersion"] = pick(rng, "", "v1", "v1beta1", None)
        case 5:
            webhook["failurePolicy"] = pick(rng, "", "deny", "Fail", "Ignore", "NoOpinion", None, 1)
        case 6:
            webhook["connectionInfo"] = pick(
                rng,
                {},
                None,
                {"type": "InClusterConfig", "kubeConfigFile": "/x"},
                {"type": "InClusterConfig", "kubeConfigFile": ""},
                {"type": "KubeConfigFile"},
                {"type": "KubeConfigFile", "kubeConfigFile": ""},
                {"type": "KubeConfigFile", "kubeConfigFile": "relative"},
                {"type": "KubeConfigFile", "kubeConfigFile": "/no/file"},
                {"type": "KubeConfigFile", "kubeConfigFile": "{folder}"},
                {"type": "KubeConfigFile", "kubeConfigFile": "/etc/hostname/x"},
                {"type": "KubeConfigFile", "kubeConfigFile": "{folder}/empty"},
                {"type": "File", "kubeConfigFile": "/x"},
                {"type": "File"},
                {"type": "kubeConfigFile"},
                {"kubeConfigFile": "/x"},
            )
        case 7 | 8:
            webhook["matchConditions"] = [{"expression": rng.choice(_EXPRESSIONS)} for _ in range(rng.randint(1, 4))]
        case 9:
            webhook["matchConditions"] = pick(
                rng,
                [],
                None,
                [{}],
                [{"expression": "true"}] * 2,
                [{"expression": f"{i} == 1"} for i in range(65)],
                [None],
            )
        case _:
            webhook.pop(rng.choice(list(webhook)))


def set_somewhere(rng: random.Random, value: Any, new: Any) -> None:
    """Puts `new` anywhere into `value`, in place of another value or under an unknown name."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.7:
            value = inner
            continue
        if isinstance(value, dict) and rng.random() < 0.3:
            value[pick(rng, "unknown", str(key).upper(), "x.y")] = new
        else:
            value[key] = new
        return


def _authorizer(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.7:
        name = pick(rng, "hook", "hook", "a.b", "Hook", "", "a_b", "-", "x" * 254, "rbac")
        return {"type": "Webhook", "name": name, "webhook": _webhook(rng)}
    mode = rng.choice(_MODES)
    return {"type": mode, "name": pick(rng, mode.lower(), mode.lower(), mode.lower(), mode, "x", "")}


def configuration(rng: random.Random) -> Case:
    """--authorization-config."""
    rows: list[dict[str, Any]] = [{"type": "Webhook", "name": "first", "webhook": _webhook(rng)}]
    rows += [_authorizer(rng) for _ in range(rng.randrange(0, 3))]
    rng.shuffle(rows)
    webhooks = [row["webhook"] for row in rows if "webhook" in row]
    for _ in range(rng.randrange(0, 3)):
        _broken_webhook(rng, rng.choice(webhooks))
    document: dict[str, Any] = {
        "apiVersion": f"apiserver.config.k8s.io/{pick(rng, 'v1', 'v1', 'v1', 'v1beta1', 'v1alpha1', 'v2')}",
        "kind": "AuthorizationConfiguration",
        "authorizers": rows,
    }
    match rng.randrange(12):
        case 0:
            row = rng.choice(rows)
            row.update(pick(rng, {"type": "Magic"}, {"type": ""}, {"type": "RBAC"}, {"webhook": {}}, {"webhook": None}))
        case 1 | 2:
            set_somewhere(rng, document, rng.choice(_ODD))
        case 3:
            document["authorizers"] = pick(rng, [], None, "x", {}, [None], [{}], [5])
    text = json.dumps(document) if rng.random() < 0.3 else yaml.safe_dump(document, allow_unicode=True)
    if rng.random() < 0.08:
        text = _spoilt(rng, text)
    files = {"config.yaml": text, "hook.kubeconfig": _KUBECONFIG, "empty": ""}
    flags = ["--authorization-config={folder}/config.yaml"]
    if rng.random() < 0.05:
        flags.append(
            pick(
                rng, "--authorization-mode=RBAC", "--authorization-webhook-version=v1", "--authorization-policy-file=x"
            )
        )
    return flags, files


def _spoilt(rng: random.Random, text: str) -> str:
    place = rng.randrange(len(text))
    return str(
        pick(
            rng,
            text[:place],
            text[:place] + rng.choice("{}[]:,\"'\t\n-#&*!%@`") + text[place:],
            "\n",
            "---\n" + text,
            text + "\n---\n" + text,
            text.replace("kind: AuthorizationConfiguration", "kind: Other"),
            text.replace("apiVersion", "apiversion"),
            text + "\nauthorizers: []\n",
            "x",
            "[]",
            "null",
        )
    )


_KUBECONFIG: Final = """apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1/authorize", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def policies(rng: random.Random) -> Case:
    """--authorization-policy-file."""
    ending = pick(rng, "\n", "\n", "\n", "\r\n", "\n\n", "\n \n")
    text = ending.join(policy_line(rng, valid=0.6) for _ in range(rng.randint(1, 4)))
    flags = ["--authorization-mode=ABAC", "--authorization-policy-file={folder}/policy.jsonl"]
    return flags, {"policy.jsonl": text + pick(rng, "", "\n")}


def policy_line(rng: random.Random, valid: float = 1.0) -> str:
    """Returns a line of a policy file, in either version."""
    if rng.random() < 0.1:
        return str(pick(rng, "", "# comment", "  # comment", "\t", " "))
    policy = _old_policy(rng) if rng.random() < 0.4 else _new_policy(rng)
    if rng.random() > valid:
        set_somewhere(rng, policy, rng.choice(_ODD))
    line = json.dumps(policy)
    if rng.random() > valid + 0.3:
        place = rng.randrange(len(line))
        return str(
            pick(
                rng, line[:place], line + "x", "x", "[]", "null", "5", line + line, "kind: Policy", '{"user": "a"', "{}"
            )
        )
    return f"{pick(rng, '', '', ' ')}{line}"


def _new_policy(rng: random.Random) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    for name, values in {
        "user": ("jane", "joe", "*", ""),
        "group": ("dev", "system:authenticated", "*", ""),
        "namespace": ("da", "*", ""),
        "resource": ("pods", "secrets", "*", "pods/log", ""),
        "apiGroup": ("", "apps", "*"),
        "nonResourcePath": ("*", "/metrics", "/logs/*", "/api*", ""),
        "readonly": (True, False),
    }.items():
        if rng.random() < 0.55:
            spec[name] = rng.choice(values)
    return {
        "apiVersion": "abac.authorization.kubernetes.io/v1beta1",
        "kind": "Policy",
        "spec": spec,
        **({"unknown": 1} if rng.random() < 0.05 else {}),
    }


def _old_policy(rng: random.Random) -> dict[str, Any]:
    policy: dict[str, Any] = {}
    for name, values in {
        "user": ("jane", "joe", "*", ""),
        "group": ("dev", "*", ""),
        "namespace": ("da", "*", ""),
        "resource": ("pods", "secrets", "*", ""),
        "readonly": (True, False),
    }.items():
        if rng.random() < 0.5:
            policy[name] = rng.choice(values)
    return policy
