"""Random headers of a front proxy, of impersonation, and spellings of Authorization."""

import base64
import random
from pathlib import Path
from typing import Any, Final

from conformance.players.credentials import Credentials
from conformance.random.credentials.presented import ADMIN, REVIEWS, ROLES, Presented, World, segment


def front_proxies(rng: random.Random, world: World) -> Presented:
    names = [
        *(
            "X-Remote-User",
            "x-remote-user",
            "X-REMOTE-USER",
            "X-Other-User",
            "X-Remote-User ",
            "X_Remote_User",
            "X-Remote-Users",
        ),
        *(
            "X-Remote-Group",
            "X-Other-Group",
            "x-remote-group",
            "X-Remote-Uid",
            "X-Remote-Extra-A",
            "X-Remote-Extra-a%2Fb",
        ),
        *(
            "X-Other-Extra",
            "X-Remote-Extra-",
            "x-remote-extra-Scopes",
            "X-Remote-Extra-%zz",
            "X-Remote-Extra-%C3%BC",
            "X-Other-",
        ),
        *(
            "X-Remote-Extra-a%2fb",
            "X-Remote-Extra-a+b",
            "X-Remote-Extra-%",
            "X-Remote-Extra-%41%",
            "X-Remote-Extra-a.b/c",
        ),
    ]
    values = [
        "jane",
        "",
        " jane ",
        "system:admin",
        "system:masters",
        "jäne",
        "a,b",
        "a b",
        "\t",
        "x" * 3000,
        '"x"',
        "system:anonymous",
        "\udcff",
    ]
    headers = [f"{rng.choice(names)}: {rng.choice(values)}" for _ in range(rng.randrange(0, 6))]
    if rng.random() < 0.7:
        headers.insert(rng.randrange(len(headers) + 1), f"{rng.choice(names[:4])}: {rng.choice(values)}")
    if rng.random() < 0.2:
        headers.append(
            rng.choice(["Impersonate-User: bob", "Connection: close, X-Remote-User", "Authorization: Basic eDp5"])
        )
    certificate = rng.choice(["front", "front", "front", "stranger front", "client", "other front", "none"])
    token = rng.choice([None, None, None, ADMIN, "wrong"])
    return Presented(certificate=_ready(world, certificate), headers=headers, token=token)


def _ready(world: World, name: str) -> Path | None:
    specs: dict[str, dict[str, Any]] = {
        "front": {"name": "front", "authority": "proxy"},
        "stranger front": {"name": "stranger", "authority": "proxy"},
        "client": {"name": "front", "groups": ["dev"], "authority": "ca"},
        "other front": {"name": "front", "authority": "other"},
        **{f"da-{name}": {"name": f"da-{name}"} for name in ROLES},
    }
    return Credentials(world.folder).certificate(name, specs[name]) if name in specs else None


def impersonation(rng: random.Random, world: World) -> Presented:
    users = [
        "jane",
        "bob",
        "",
        " ",
        "system:anonymous",
        "system:serviceaccount:da:robot",
        "system:serviceaccount:da:",
        "system:node:n1",
        "system:node:",
        "system:masters",
        "jäne",
        "system:serviceaccount:da",
        "system:serviceaccount:a:b:c",
        "system:serviceaccount:DA:robot",
        "system:admin",
    ]
    groups = [
        "dev",
        "system:masters",
        "",
        "system:authenticated",
        "system:unauthenticated",
        "system:serviceaccounts",
        "system:nodes",
        "a,b",
    ]
    name = rng.choice(["Impersonate-User", "impersonate-user", "Impersonate-User"])
    headers = [f"{name}: {rng.choice(users)}" for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 1, 2]))]
    headers += [
        f"{rng.choice(['Impersonate-Group', 'impersonate-group'])}: {rng.choice(groups)}"
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3]))
    ]
    headers += [f"Impersonate-Uid: {rng.choice(['7', '8', '', ' '])}" for _ in range(rng.choice([0, 0, 0, 0, 1, 2]))]
    extras = [
        "a",
        "b",
        "A",
        "a%2Fb",
        "",
        "%zz",
        "ü",
        "a.b",
        "scopes",
        "example.com%2Fx",
        "%",
        "a_b",
        "authentication.kubernetes.io%2Fnode-name",
    ]
    headers += [
        f"Impersonate-Extra-{rng.choice(extras)}: {rng.choice(['x', '', 'y,z', 'ü', 'n1'])}"
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2]))
    ]
    headers += rng.choice([[]] * 8 + [["Impersonate-Nothing: x"], ["Impersonate: x"], ["X-Remote-User: boss"]])
    rng.shuffle(headers)
    who = rng.choice([*ROLES, *ROLES, "admin", "admin", "admin", "anonymous", "wrong"])
    token = {"admin": ADMIN, "wrong": "wrong"}.get(who)
    return Presented(certificate=_ready(world, f"da-{who}"), headers=headers, token=token)


_WRONG: Final = "wrong"
_ENCODED: Final = base64.urlsafe_b64encode(ADMIN.encode()).decode()
_BEARER: Final = "base64url.bearer.authorization.k8s.io."
_WORDS: Final = [
    *(
        f"{scheme} {token}"
        for scheme in (
            "Bearer",
            "bearer",
            "BEARER",
            "beareR",
            "Token",
            "Basic",
            "Bearer:",
            "Bearer,",
            "Negotiate",
            "",
        )
        for token in (ADMIN, _WRONG)
    ),
    *(
        f"Bearer  {ADMIN}",
        f"Bearer\t{ADMIN}",
        f" Bearer {ADMIN}",
        f"Bearer {ADMIN} ",
        f"Bearer {ADMIN} x",
        f"Bearer {ADMIN}, x",
        f'Bearer "{ADMIN}"',
    ),
    *(
        f"Bearer {ADMIN},Bearer {_WRONG}",
        f"Bearer={ADMIN}",
        "Bearer",
        "Bearer ",
        "",
        " ",
        f"Bearer {_WRONG} {ADMIN}",
        f"Basic {_ENCODED}",
    ),
    *(
        f"Bearer\u00a0{ADMIN}",
        f"Bearer {ADMIN}\u00a0",
        f"Bearer {ADMIN}\udcff",
        f"Bearer \u200b{ADMIN}",
        f"Bearer  {ADMIN} {_WRONG}",
        f"Bearer   {ADMIN}",
    ),
    f"Basic {base64.b64encode(f'admin:{ADMIN}'.encode()).decode()}",
]
_NAMES: Final = [
    "Authorization",
    "Authorization",
    "Authorization",
    "authorization",
    "AUTHORIZATION",
    "Proxy-Authorization",
    "X-Authorization",
    "Authorization2",
]
_PROTOCOLS: Final = [
    _BEARER + _ENCODED.rstrip("="),
    _BEARER + _ENCODED,
    _BEARER,
    _BEARER + "%",
    _BEARER + segment(b"wrong"),
    _BEARER + segment(b"\xff"),
    "v4.channel.k8s.io",
    "",
    "base64.binary.k8s.io",
    _BEARER + _ENCODED.rstrip("=") + "=",
    "BASE64URL.bearer.authorization.k8s.io." + _ENCODED.rstrip("="),
]


def _upgrade(rng: random.Random) -> list[str]:
    """Returns headers that ask for a WebSocket and offer tokens as its protocols."""
    chosen = [rng.choice(_PROTOCOLS) for _ in range(rng.randrange(1, 4))]
    headers = (
        [f"Sec-WebSocket-Protocol: {rng.choice([', ', ',', ' , ']).join(chosen)}"]
        if rng.random() < 0.7
        else [f"Sec-WebSocket-Protocol: {protocol}" for protocol in chosen]
    )
    headers += rng.choice(
        [[], ["Upgrade: websocket"], ["Upgrade: WebSocket"], ["Upgrade: h2c"], ["Upgrade: websocket, x"]]
    )
    headers += rng.choice(
        [
            ["Connection: Upgrade"],
            ["Connection: keep-alive, upgrade"],
            ["Connection: close"],
            ["Connection: UPGRADE"],
            ["Connection: close", "Connection: upgrade"],
        ]
    )
    return headers


def spellings(rng: random.Random, world: World) -> Presented:
    """Ways of writing a good token and a bad one."""
    headers = [f"{rng.choice(_NAMES)}: {rng.choice(_WORDS)}" for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3]))]
    path, method = REVIEWS, "POST"
    if rng.random() < 0.3:
        headers += _upgrade(rng)
        if rng.random() < 0.5:
            path, method = (
                rng.choice(
                    [
                        "/api/v1/namespaces/da/pods?watch=1&timeoutSeconds=1",
                        "/api/v1/namespaces/da/pods/p/exec?command=x",
                        "/api/v1/nodes",
                    ]
                ),
                "GET",
            )
            if rng.random() < 0.8:
                headers += [
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                    "Sec-WebSocket-Version: 13",
                    "Origin: http://x",
                ]
    if rng.random() < 0.2:
        path += f"?access_token={ADMIN}&token={ADMIN}"
    if rng.random() < 0.1:
        headers.append(f"Cookie: token={ADMIN}; Authorization=Bearer {ADMIN}")
    if rng.random() < 0.1:
        headers.append(
            rng.choice(
                [
                    "Impersonate-User: jane",
                    "X-Remote-User: jane",
                    "X-HTTP-Method-Override: DELETE",
                    "X-Forwarded-User: jane",
                ]
            )
        )
    return Presented(headers=headers, path=path, method=method)
