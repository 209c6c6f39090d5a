"""Random credentials, most of them attacks, presented to a real server and to another one: prints each kind of difference once.

    python -m conformance.compare.access.authentication --files FOLDER
    python -m conformance.compare.access.authentication --oracle URL --server URL --folder FOLDER [--seed N] [--count N] [--topic NAME]

The first runs an OpenID provider and a token webhook on loopback, and prints the flags that both servers are to be started with, besides
`--token-auth-file` with the administrator's token, `reference-admin`. The second asks both who a request comes from: tokens (spoilt,
forged, of several issuers and of accounts that are gone), client certificates and chains, the headers of a front proxy and of
impersonation, and every way of writing a header. A TokenReview also has the reasons for a rejection.
"""

import argparse
import json
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from conformance.compare.access.credential_server import Server
from conformance.players import credentials
from conformance.players.credentials import Credentials
from conformance.random.credentials.certificates import certificates
from conformance.random.credentials.headers import front_proxies, impersonation, spellings
from conformance.random.credentials.presented import ISSUER, Presented, World
from conformance.random.credentials.tokens import tokens

_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
FLAGS: Final = (
    "--anonymous-auth=true",
    "--authentication-config={folder}/authentication-all.yaml",
    "--authentication-token-webhook-config-file={folder}/review.kubeconfig",
    "--authentication-token-webhook-version=v1",
    "--client-ca-file={folder}/bundle.crt",
    "--enable-bootstrap-token-auth",
    "--requestheader-client-ca-file={folder}/proxy.crt",
    "--requestheader-allowed-names=front,front proxy",
    "--requestheader-username-headers=X-Remote-User,X-Other-User",
    "--requestheader-group-headers=X-Remote-Group,X-Other-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-,X-Other-",
    "--requestheader-uid-headers=X-Remote-Uid",
    f"--service-account-issuer={ISSUER}",
    "--service-account-issuer=https://second",
    "--service-account-signing-key-file={folder}/first.key",
    "--service-account-key-file={folder}/first.pub",
    "--service-account-key-file={folder}/second.pub",
    "--service-account-key-file={folder}/third.pub",
)
TOPICS: Final[Mapping[str, Callable[[random.Random, World], Presented | None]]] = {
    "tokens": tokens,
    "certificates": certificates,
    "front-proxies": front_proxies,
    "impersonation": impersonation,
    "spellings": spellings,
}


def make(folder: Path) -> None:
    """Authorities that may not issue everything, beside the others."""
    credentials.make(folder)
    if (folder / "bundle.crt").exists():
        return
    now, day = datetime.now(UTC), timedelta(days=30)
    extra: dict[str, list[x509.ExtensionType]] = {
        "shallow": [x509.BasicConstraints(True, 0)],
        "narrow": [x509.BasicConstraints(True, None), x509.NameConstraints([x509.DNSName("good.example")], None)],
    }
    for name, extensions in extra.items():
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder(
            subject, subject, key.public_key(), x509.random_serial_number(), now - day, now + day
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=True)
        (folder / f"{name}.crt").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
        (folder / f"{name}.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "bundle.crt").write_bytes(
        b"".join((folder / f"{name}.crt").read_bytes() for name in ("ca", "narrow", "shallow"))
    )


def _files(folder: Path) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    make(folder)
    with credentials.prepared(folder) as ready:
        ready.flags("")
        print("\n".join(ready.placed(flag) for flag in FLAGS), flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            return 0


def _plain(text: str) -> str:
    """Without what servers choose, and the order of fields."""
    status, _, body = text.partition(" ")
    body, _, warned = body.partition(" ['")
    with suppress(ValueError):
        text = f"{status} {json.dumps(json.loads(body), sort_keys=True)} {warned}"
    text = re.sub(r'"creationTimestamp": "[^"]*"', '"creationTimestamp": null', text)
    return _TIME.sub("TIME", _UID.sub("UID", text))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path)
    parser.add_argument("--oracle")
    parser.add_argument("--server")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--topic", choices=list(TOPICS))
    arguments = parser.parse_args()
    if arguments.files is not None:
        return _files(arguments.files.absolute())
    folder = arguments.folder.absolute()
    world = World(folder, Credentials(folder).url)
    servers = [Server(url, folder) for url in (arguments.oracle, arguments.server)]
    for server in servers:
        server.prepare()
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    for number in range(arguments.seed, arguments.seed + arguments.count):
        rng = random.Random(number)
        topic = arguments.topic or rng.choice(list(TOPICS))
        presented = TOPICS[topic](rng, world)
        if presented is None:
            continue
        asked: list[Callable[[Server], str]] = [lambda server, what=presented: server.ask(what)]  # type: ignore[misc]
        if presented.token is not None and topic == "tokens":
            asked.append(lambda server, what=presented: server.review(what))  # type: ignore[misc]
        for ask in asked:
            oracle, got = (_plain(ask(found)) for found in servers)
            counts[f"{topic} {'equal' if oracle == got else 'different'}"] += 1
            counts[oracle[:3]] += 1
            kind = re.sub(r"[A-Za-z0-9+/_=-]{30,}", "…", f"{oracle[:160]} | {got[:160]}")
            if oracle != got and kind not in seen:
                seen.add(kind)
                told = repr(presented)
                print(
                    f"--- seed {number} {topic}: {told[:900]}\n  oracle: {oracle[:900]}\n  server: {got[:900]}",
                    flush=True,
                )
    print(json.dumps(counts, indent=1, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
