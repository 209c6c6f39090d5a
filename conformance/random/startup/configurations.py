"""Random files for --authentication-config."""

import json
import random
from pathlib import Path
from typing import Any, Final

import yaml

from conformance.random.authorization_files import Case, pick, set_somewhere
from conformance.random.startup.values import BAD_PEM, ODD, URLS, spoilt_text

_EXPRESSIONS: Final = (
    "claims.sub",
    "claims.email",
    "claims.?email.orValue('x')",
    "claims.email_verified ? claims.email : 'x'",
    "claims.a__dot__b",
    "claims['a.b']",
    "claims.groups",
    "claims.groups.map(g, 'x:' + g)",
    "claims.nope.deep",
    "claims",
    "claim.sub",
    "user.username",
    "true",
    "1",
    "'text'",
    "[1, 2]",
    "['a', 'b']",
    "claims.sub == 'x'",
    "claims.exp - claims.nbf <= 86400",
    "!user.username.startsWith('system:')",
    "user.groups.all(group, !group.startsWith('system:'))",
    "user.extra['x'].size() > 0",
    "user.nope",
    "claims.sub +",
    "",
    " ",
    "has(claims.sub)",
    "claims.__namespace__",
    "claims.for",
    "claims.sub.split(',')",
    "claims.sub.split(',')[0]",
    "request.user",
    "string(claims.number)",
    "quantity('1Gi').isInteger()",
    "claims.?email.optMap(e, e).orValue('')",
    "ip('127.0.0.1').family() == 4",
    "{'a': 'b'}",
    "null",
    "dyn(claims.sub)",
    "claims.sub\n+ 'x'",
    "1 +\n\t'x'",
    "timestamp(claims.iat)",
    "type(claims.sub)",
    "claims.all(k, k != 'x')",
    "claims.exists(x, y, x == y)",
    "cel.bind(x, claims.sub, x)",
    "authorizer",
    "sets.contains(claims.groups, ['a'])",
    "url('https://x').getHost()",
    "claims.sub.matches('(')",
    "x" * 30,
)
_KEYS: Final = (
    "example.com/team",
    "example.com/Team",
    "k8s.io/x",
    "a.k8s.io/x",
    "kubernetes.io/x",
    "xk8s.io/y",
    "team",
    "",
    "/x",
    "example.com/",
    "example.com/a/b",
    "-x.com/a",
    "example.com/ä",
    "example.com/a b",
    "EXAMPLE.com/a",
    "authentication.kubernetes.io/credential-id",
    "example.com/" + "a" * 300,
)


def _jwt(rng: random.Random) -> dict[str, Any]:
    rule = {"claim": "hd", "requiredValue": "x"}
    return {
        "issuer": {"url": f"https://issuer{rng.randrange(3)}", "audiences": ["app"]},
        "claimMappings": {
            "username": pick(rng, {"claim": "sub", "prefix": ""}, {"expression": "claims.sub"}),
            **pick(
                rng, {}, {"groups": {"claim": "groups", "prefix": "g:"}}, {"groups": {"expression": "claims.groups"}}
            ),
            **pick(rng, {}, {"uid": {"claim": "uid"}}, {"uid": {"expression": "claims.uid"}}),
            **pick(rng, {}, {"extra": [{"key": "example.com/a", "valueExpression": "claims.a"}]}),
        },
        **pick(rng, {}, {"claimValidationRules": [rule]}),
        **pick(rng, {}, {"userValidationRules": [{"expression": "user.username != ''", "message": "m"}]}),
    }


def _is_whole(jwt: dict[str, Any]) -> bool:
    """Reports whether no earlier change has put something else in the place of the configuration's parts."""
    return isinstance(jwt.get("issuer"), dict) and isinstance(jwt.get("claimMappings"), dict)


def _broken_jwt(rng: random.Random, jwt: dict[str, Any], authority: str) -> None:
    """Makes one change to the configuration."""
    issuer, mappings = jwt["issuer"], jwt["claimMappings"]
    text = rng.choice(_EXPRESSIONS)
    change = rng.randrange(16)
    if change == 0:
        issuer["url"] = rng.choice(URLS)
    elif change == 1:
        issuer["discoveryURL"] = rng.choice((*URLS, issuer["url"], f"{issuer['url']}/"))
    elif change == 2:
        issuer["audiences"] = pick(rng, [], [""], ["a", "a"], ["a", "b"], ["a", ""], None, ["", ""])
    elif change == 3:
        issuer["audienceMatchPolicy"] = pick(rng, "MatchAny", "", "matchAny", "MatchAll")
        if rng.random() < 0.5:
            issuer["audiences"] = ["a", "b"]
    elif change == 4:
        issuer["certificateAuthority"] = pick(rng, authority, "x", "", BAD_PEM, authority + "x", authority * 2)
    elif change == 5:
        issuer["egressSelectorType"] = pick(rng, "controlplane", "cluster", "", "etcd", "Cluster")
    elif change == 6:
        mappings["username"] = _prefixed(rng, text)
    elif change == 7:
        mappings["groups"] = _prefixed(rng, text)
    elif change == 8:
        mappings["uid"] = pick(rng, {"expression": text}, {"claim": "x", "expression": text}, {}, {"claim": ""})
    elif change == 9:
        mappings["extra"] = [
            pick(
                rng,
                {"key": rng.choice(_KEYS), "valueExpression": "claims.a"},
                {"key": "example.com/a", "valueExpression": rng.choice(_EXPRESSIONS)},
            )
            for _ in range(rng.randrange(1, 4))
        ]
    elif change in (10, 11):
        jwt["claimValidationRules"] = [_rule(rng) for _ in range(rng.randrange(1, 4))]
    elif change == 12:
        rules = [
            pick(rng, {"expression": rng.choice(_EXPRESSIONS), "message": "m"}, {"message": "m"}, {}) for _ in "ab"
        ]
        jwt["userValidationRules"] = rules
    elif change == 13:
        mappings["username"] = {"expression": "claims.email"}
        jwt["claimValidationRules"] = [
            {
                "expression": pick(
                    rng,
                    "claims.?email_verified.orValue(true)",
                    "has(claims.email_verified)",
                    "claims['email_verified'] == true",
                    "claims.email_verified == true",
                    "true",
                )
            }
        ]
    else:
        set_somewhere(rng, jwt, rng.choice(ODD))


def _prefixed(rng: random.Random, text: str) -> Any:
    return pick(
        rng,
        {"expression": text},
        {"expression": text},
        {"expression": text, "prefix": "x"},
        {"expression": text, "prefix": ""},
        {"claim": "a", "expression": text},
        {"claim": "a"},
        {"claim": "a", "prefix": None},
        {"prefix": "x"},
        {"claim": "", "prefix": ""},
        {},
        None,
    )


def _rule(rng: random.Random) -> Any:
    return pick(
        rng,
        {"expression": rng.choice(_EXPRESSIONS)},
        {"expression": rng.choice(_EXPRESSIONS), "message": "m"},
        {"expression": "true", "requiredValue": "x"},
        {"expression": "true", "claim": "x"},
        {"claim": rng.choice("ab"), "requiredValue": "x"},
        {"claim": rng.choice("ab"), "message": "m"},
        {"requiredValue": "x"},
        {},
    )


def authentication_configurations(rng: random.Random, folder: Path) -> Case:
    authority = (folder / "ca.crt").read_text()
    jwts = [_jwt(rng) for _ in range(rng.randrange(1, 3))]
    for _ in range(rng.randrange(1, 4)):
        jwt = rng.choice(jwts)
        if _is_whole(jwt):
            _broken_jwt(rng, jwt, authority)
    document: dict[str, Any] = {
        "apiVersion": f"apiserver.config.k8s.io/{pick(rng, 'v1', 'v1', 'v1beta1', 'v1alpha1')}",
        "kind": "AuthenticationConfiguration",
        "jwt": jwts,
    }
    flags = ["--authentication-config={folder}/config.yaml"]
    if rng.random() < 0.2:
        conditions = pick(rng, [], [{"path": "/livez"}], [{"path": ""}], [{}], [{"path": "x"}, {"path": "x"}], None)
        document["anonymous"] = pick(
            rng, {"enabled": True, "conditions": conditions}, {"conditions": conditions}, {}, {"enabled": 1}
        )
        flags += pick(rng, [], ["--anonymous-auth=true"], ["--anonymous-auth=false"])
    if rng.random() < 0.05:
        set_somewhere(rng, document, rng.choice(ODD))
    if rng.random() < 0.05:
        flags.append(pick(rng, "--oidc-issuer-url=https://x", "--oidc-username-claim=x", "--oidc-required-claim=a=b"))
    text = json.dumps(document) if rng.random() < 0.3 else yaml.safe_dump(document, allow_unicode=True)
    if rng.random() < 0.1:
        text = spoilt_text(rng, text)
    return flags, {"config.yaml": text}
