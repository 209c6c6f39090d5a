"""Random claims of tokens: of service accounts, of OpenID providers, and changed ones."""

import json
import random
import time
from typing import Any, Final

from conformance.random.credentials.presented import ISSUER

_DIALECT: Final[tuple[Any, ...]] = (
    None,
    "",
    "x",
    0,
    1,
    -1,
    1.5,
    True,
    False,
    [],
    {},
    [None],
    ["x"],
    [1],
    {"a": 1},
    "\u0000",
    "ü",
)


def _times(rng: random.Random) -> Any:
    now = int(time.time())
    text = rng.choice(
        [
            str(now + 600),
            str(now - 600),
            str(now + 5000000),
            str(now - 120),
            str(now - 30),
            str(now + 30),
            str(now + 120),
            f"{now + 600}.5",
            f"{now + 600}e0",
            f"{now - 600}.0",
            "0",
            "-1",
            "-0",
            "1e400",
            "-1e400",
            "1e30",
            "-1e30",
            "1e19",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775809",
            "1e-5",
            "null",
            "true",
            "[]",
            "{}",
            f'"{now + 600}"',
            f'"{now - 600}"',
            '""',
            '"x"',
            '"1e400"',
            '"NaN"',
            '"Infinity"',
            '" 1"',
            '"0x7fffffffff"',
            f'"+{now + 600}"',
            '"9_999_999_999"',
            '"99999999999999999999"',
            "012",
            "1.",
            "NaN",
            "1E10",
            "253402300800",
            "99999999999",
        ]
    )
    return _Raw(text)


class _Raw(str):
    """JSON as it stands."""

    __slots__ = ()


def as_json(value: Any) -> str:
    if isinstance(value, _Raw):
        return str(value)
    if isinstance(value, list):
        return "[" + ",".join(map(as_json, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{as_json(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def account_claims(rng: random.Random) -> dict[str, Any]:
    now = int(time.time())
    private: dict[str, Any] = {"namespace": "da", "serviceaccount": {"name": "robot", "uid": "{account}"}}
    bound = rng.choice(["", "", "pod", "secret", "node", "pod node"]).split()
    for name in bound:
        private[name] = {"name": {"pod": "p", "secret": "s", "node": "n1"}[name], "uid": "{" + name + "}"}
    if rng.random() < 0.2:
        private["warnafter"] = rng.choice([now - 10, now + 600, "x", None])
    return {
        "iss": rng.choice([ISSUER, ISSUER, "https://second"]),
        "aud": [rng.choice([ISSUER, "https://second"])],
        "exp": now + 600,
        "iat": now - 5,
        "nbf": now - 5,
        "jti": "j",
        "sub": "system:serviceaccount:da:robot",
        "kubernetes.io": private,
    }


def legacy_claims(rng: random.Random) -> dict[str, Any]:
    claim = "kubernetes.io/serviceaccount/"
    return {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:da:robot",
        f"{claim}namespace": "da",
        f"{claim}secret.name": rng.choice(["s", "nope"]),
        f"{claim}service-account.name": "robot",
        f"{claim}service-account.uid": "{account}",
    }


def oidc_claims(rng: random.Random, url: str) -> dict[str, Any]:
    issuer = rng.choice(["claims", "email", "expressions", "expressions", "nobody"])
    now = int(time.time())
    return {
        "iss": f"{url}/{issuer}",
        "aud": rng.choice(["app", ["app"], ["other"], ["x", "app"]]),
        "exp": now + 600,
        "iat": now,
        "sub": rng.choice(["jane", "system:admin", "", "ü"]),
        "email": rng.choice(["jane@x", "", 5, None]),
        **rng.choice([{}, {"email_verified": rng.choice([True, False, "true", None, 1])}]),
        **rng.choice([{}, {"groups": rng.choice([["a", "b"], "a", [], [""], None, [1], {}, ["a", None], 5, "a,b"])}]),
        **rng.choice([{}, {"uid": rng.choice(["7", "", 5, None, ["x"]])}]),
        **rng.choice([{}, {"a.b": rng.choice(["x", ["y"], "", 5])}]),
        **rng.choice([{}, {"list": rng.choice([["x", "y"], [], "z", 5, None, [[]]])}]),
        **rng.choice([{}, {"hd": rng.choice(["example.com", "other", 5, None])}]),
        **rng.choice([{}, {"jti": rng.choice(["j", "", 5, None])}]),
    }


_CLAIMS: Final = (
    "iss",
    "aud",
    "exp",
    "iat",
    "nbf",
    "sub",
    "jti",
    "kubernetes.io",
    "nonce",
    "at_hash",
    "_claim_names",
    "_claim_sources",
)


def changed_claims(rng: random.Random, claims: dict[str, Any], url: str) -> None:
    change = rng.randrange(9)
    name = rng.choice([*_CLAIMS, *claims])
    if change in (0, 1):
        claims[rng.choice(["exp", "nbf", "iat"])] = _times(rng)
    elif change == 2:
        claims.pop(name, None)
    elif change == 3:
        claims[name] = rng.choice(_DIALECT)
    elif change == 4:
        issuers = [
            ISSUER,
            ISSUER + "/",
            ISSUER.upper(),
            "https://second",
            "https://other",
            f"{url}/claims",
            f"{url}/claims/",
            f"{url}/email",
            "",
            None,
        ]
        claims["iss"] = rng.choice(issuers)
    elif change == 5:
        claims["aud"] = rng.choice(
            [ISSUER, [ISSUER], [], [""], "", None, ["x"], "app", ["app", 5], 5, {}, ["a"] * 500, "APP", ["other"]]
        )
    elif change == 6:
        private = claims.get("kubernetes.io")
        if isinstance(private, dict):
            place = rng.choice([private, *(value for value in private.values() if isinstance(value, dict))])
            place[rng.choice([*place, "name", "uid", "pod", "node", "secret"])] = rng.choice(
                [*_DIALECT, {"name": "p", "uid": "wrong"}, "../../x", "a/b", "nope"]
            )
        else:
            claims[name] = rng.choice(["../x", "a" * 300, "system:masters"])
    elif change == 7:
        claims[rng.choice(["ISS", "Sub", "EXP", "Aud", "KUBERNETES.IO", "iſs"])] = rng.choice(
            [ISSUER, "x", 0, ["system:masters"]]
        )
    else:
        claims["sub"] = rng.choice(["system:serviceaccount:kube-system:admin", "admin", "", 5, None])


def with_doubles(rng: random.Random, text: str) -> str:
    """Keys twice, and JSON that only some parsers take."""
    change = rng.randrange(14)
    inside = text[1:]
    return [
        '{"sub":"system:admin",' + inside,
        text[:-1] + ',"sub":"system:admin"}',
        text[:-1] + ',"iss":"https://other"}',
        '{"exp":99999999999,' + inside,
        " " + text + "\n",
        text + "x",
        "[" + text + "]",
        '"' + inside,
        text.replace(",", ",\t", 1),
        text[:-1] + ",}",
        text[:-1] + ',"x":' + "[" * 200 + "]" * 200 + "}",
        "\ufeff" + text,
        text[:-1] + ',"x":"\\ud800"}',
        text[:-1] + ',"kubernetes.io":{}}',
    ][change]
