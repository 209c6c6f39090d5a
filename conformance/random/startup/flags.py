"""Random flags of OpenID Connect and of service accounts."""

import random
from pathlib import Path

from conformance.random.authorization_files import Case, pick
from conformance.random.startup.values import BAD_PEM, CURVE, ED25519, ED25519_KEY, ENCRYPTED, ISSUER, URLS


def oidc_flags(rng: random.Random, folder: Path) -> Case:
    flags = [f"--oidc-issuer-url={pick(rng, 'https://issuer', 'https://issuer', rng.choice(URLS))}"]
    if rng.random() < 0.9:
        flags.append("--oidc-client-id=app")
    possible = [
        *(f"--oidc-username-claim={name}" for name in ("email", "", "a.b", "sub")),
        *(f"--oidc-username-prefix={name}" for name in ("-", "", "x:")),
        *(f"--oidc-groups-claim={name}" for name in ("groups", "")),
        *(f"--oidc-groups-prefix={name}" for name in ("-", "", "x:")),
        *(
            f"--oidc-signing-algs={name}"
            for name in (
                "RS256",
                "ES256,RS256",
                "none",
                "HS256",
                "",
                "RS256,",
                "rs256",
                "EdDSA",
                " RS256",
                '"RS256',
                'a"b',
            )
        ),
        *(f"--oidc-required-claim={pair}" for pair in ("a=b", "a=b=c", "a", "=b", "", "a=", "a=b,c=d", " a = b ")),
        *(
            f"--oidc-ca-file={name}"
            for name in ("{folder}/ca.crt", "/no/file", "{folder}/bad.pem", "", "{folder}", "{folder}/first.key")
        ),
        f"--oidc-client-id={pick(rng, '', 'app')}",
        "--oidc-issuer-url=",
    ]
    flags += rng.sample(possible, rng.randrange(0, 4))
    if rng.random() < 0.1:
        flags = rng.sample(possible, 1)
    return flags, {"bad.pem": BAD_PEM}


def service_account_flags(rng: random.Random, folder: Path) -> Case:
    files = {
        "bad.pem": BAD_PEM,
        "empty.pem": "",
        "text.pem": "no key",
        "both.pem": (folder / "first.pub").read_text() + (folder / "second.pub").read_text(),
        "spoilt.pem": (folder / "first.pub").read_text().replace("A", "B"),
        "encrypted.pem": ENCRYPTED,
        "mixed.pem": "comment\n" + (folder / "first.key").read_text() + "trailing",
        "curve.pem": CURVE,
        "ed25519.pem": ED25519,
        "ed25519.key": ED25519_KEY,
    }
    names = [*(f"{{folder}}/{name}" for name in files), "/no/file", "", "{folder}", "{folder}/ca.crt"]
    names += [f"{{folder}}/{name}" for name in ("first.pub", "second.pub", "third.key", "first.key", "second.key")]
    flags = [f"--service-account-issuer={pick(rng, ISSUER, ISSUER, rng.choice(URLS))}"]
    flags.append(
        f"--service-account-key-file={pick(rng, '{folder}/first.pub', '{folder}/first.pub', rng.choice(names))}"
    )
    signing = pick(rng, "{folder}/first.key", "{folder}/first.key", rng.choice(names))
    flags.append(f"--service-account-signing-key-file={signing}")
    possible = [
        f"--service-account-issuer={rng.choice(URLS)}",
        f"--service-account-key-file={rng.choice(names)}",
        *(
            f"--service-account-max-token-expiration={text}"
            for text in ("1h", "59m", "0", "-1h", "1", "x", "1193047h", "1193046h28m15s", "1193046h28m16s")
        ),
        *(f"--service-account-jwks-uri={text}" for text in URLS),
        *(f"--service-account-lookup={text}" for text in ("true", "false", "no")),
        *(f"--service-account-extend-token-expiration={text}" for text in ("true", "false", "yes", "T")),
        *(f"--api-audiences={text}" for text in ("", "a,b", "a,,b", '"a,b"', '"a')),
    ]
    flags += rng.sample(possible, rng.randrange(0, 3))
    if rng.random() < 0.1:
        flags.pop(rng.randrange(3))
    rng.shuffle(flags)
    return flags, files
