"""Random tokens: spoilt, forged, of several issuers and of accounts that are gone."""

import random
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from jwt.algorithms import get_default_algorithms

from conformance.players import credentials
from conformance.players.credentials import KEYS
from conformance.random.credentials.claims import (
    account_claims,
    as_json,
    changed_claims,
    legacy_claims,
    oidc_claims,
    with_doubles,
)
from conformance.random.credentials.presented import ADMIN, ISSUER, Presented, Token, World, segment

_ALGORITHMS: Final[Sequence[Any]] = [
    "none",
    "None",
    "nOnE",
    "",
    "HS256",
    "HS512",
    "rs256",
    "RS256",
    "ES256",
    "PS256",
    "EdDSA",
    "ES256K",
    "dir",
    5,
    None,
    ["RS256"],
]


_KEY_IDS: Final[Sequence[Any]] = [
    "",
    "x",
    "../../../etc/passwd",
    "' OR 1=1 --",
    "http://127.0.0.1:1/",
    "/dev/null",
    5,
    None,
    ["x"],
    "\u0000",
    "a" * 5000,
]


_PARAMETERS: Final[Sequence[Any]] = [
    {"typ": "JWT"},
    {"typ": 5},
    {"cty": "JWT"},
    {"nonce": "x"},
    {"nonce": 5},
    {"zip": "DEF"},
    {"enc": "A128GCM"},
    {"x5t": "x"},
    {"ALG": "none"},
    {"KID": "x"},
    {"x5t#S256": 5},
]


def _header(rng: random.Random, key: str, folder: Path) -> tuple[dict[str, Any], str]:
    algorithm = KEYS[key]
    header: dict[str, Any] = {"alg": algorithm, "kid": credentials.key_id(credentials.key_of(folder, key))}
    if rng.random() < 0.55:
        return header, algorithm
    change = rng.randrange(12)
    if change == 0:
        algorithm = rng.choice(["none", "HS256"])
        header["alg"] = algorithm
    elif change == 1:
        header["alg"] = rng.choice(_ALGORITHMS)
    elif change == 2:
        header["kid"] = rng.choice(_KEY_IDS)
    elif change == 3:
        header.pop("kid")
    elif change == 4:
        header.pop("alg")
    elif change == 5:
        header["crit"] = rng.choice([["exp"], ["b64"], [], "exp", ["x"], [5], None, {}])
    elif change == 6:
        header["b64"] = rng.choice([False, True, "false", None, 0])
        if rng.random() < 0.5:
            header["crit"] = ["b64"]
    elif change == 7:
        public = get_default_algorithms()[KEYS["stranger"]].to_jwk(
            credentials.key_of(folder, "stranger").public_key(), as_dict=True
        )
        header["jwk"] = rng.choice(
            [public, {}, None, "x", {"kty": "oct", "k": "AA"}, {**public, "x": "AA"}, {"kty": "RSA"}]
        )
    elif change == 8:
        header[rng.choice(["jku", "x5u"])] = rng.choice(["https://127.0.0.1:1/keys", "file:///etc/passwd", 5, None])
    elif change == 9:
        header["x5c"] = rng.choice([[], ["AA=="], "x", None, [5]])
    elif change == 10:
        header.update(rng.choice(_PARAMETERS))
    else:
        algorithm = "RS512" if algorithm == "RS256" else algorithm
        algorithm = rng.choice(["PS256", "RS384", "RS512", "PS512"]) if KEYS[key] == "RS256" else algorithm
        header["alg"] = algorithm
    return header, algorithm


def _spoiler(rng: random.Random) -> Callable[[list[str]], str]:
    if rng.random() < 0.7:
        return ".".join
    place, letter, change = rng.random(), rng.choice(string.ascii_letters + "+/=-_ .%\u00fc"), rng.randrange(15)

    def spoil(parts: list[str]) -> str:
        text = ".".join(parts)
        at = int(place * len(text))
        return [
            text[:at] + letter + text[at + 1 :],
            text[:at] + letter + text[at:],
            text[:at],
            ".".join(parts[:2]),
            ".".join(parts[:2]) + ".",
            text + ".",
            text + "=",
            ".".join(part + "=" * (-len(part) % 4) for part in parts),
            ".".join([parts[0], parts[1], parts[2][:-1]]),
            ".".join([*parts, parts[2]]),
            ".".join([parts[0], parts[1], segment(b"\0" * 64)]),
            ".".join([parts[0], "", parts[2]]),
            text + "A" * 10000,
            ".".join([parts[0], segment(text.encode()), parts[2]]),
            text.swapcase(),
        ][change]

    return spoil


def tokens(rng: random.Random, world: "World") -> Presented:
    kind = rng.randrange(10)
    if kind == 0:
        return Presented(token=_plain_token(rng), audiences=_audiences(rng))
    if kind < 5:
        claims, key = account_claims(rng), rng.choice(["first", "second", "third", "first", "stranger", "issuer"])
    elif kind == 5:
        claims, key = legacy_claims(rng), rng.choice(["first", "second", "stranger"])
    else:
        claims, key = (
            oidc_claims(rng, world.url),
            rng.choice(["issuer", "issuer", "issuer2", "issuer2", "stranger", "first"]),
        )
    for _ in range(rng.choice([0, 0, 1, 1, 1, 2])):
        changed_claims(rng, claims, world.url)
    header, algorithm = _header(rng, key, world.folder)
    text, head = as_json(claims), as_json(header)
    if rng.random() < 0.1:
        text = with_doubles(rng, text)
    if rng.random() < 0.05:
        head = rng.choice(
            [
                head[:-1] + ',"alg":"none"}',
                '{"alg":"none",' + head[1:],
                head + "x",
                "[]",
                "null",
                " " + head,
                head[:-1] + ',"kid":"x"}',
            ]
        )
    return Presented(token=Token(head, text, key, algorithm, _spoiler(rng)), audiences=_audiences(rng))


def _plain_token(rng: random.Random) -> str:
    return rng.choice(
        [
            ADMIN,
            ADMIN + "x",
            ADMIN.upper(),
            "abcdef.0123456789abcdef",
            "abcdef.0123456789abcdeg",
            "abcdeg.0123456789abcdef",
            "ABCDEF.0123456789abcdef",
            "abcdef.0123456789abcdef ",
            "abcdef.0123456789abcde",
            "hook-jane",
            "hook-refused",
            "hook-elsewhere",
            "hook-second",
            "hook-nobody",
            "hook-odd",
            "..",
            ".",
            "a.b.c",
            "a.b.c.d.e",
            "e30.e30.",
            "e30.e30.e30",
            ".e30.",
            "eyJhbGciOiJub25lIn0.e30.",
            "x" * 70000,
            "." * 5000,
            "%20",
            "ü",
        ]
    )


def _audiences(rng: random.Random) -> Sequence[str]:
    return rng.choice(
        [(), (), (ISSUER,), ("https://second",), ("app",), ("x",), ("x", ISSUER), ("",), ("https://second", ISSUER)]
    )
