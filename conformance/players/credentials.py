"""Creates what areas of authentication need besides flags: certificates, keys and files in a folder, and tokens signed with them.

`python -m conformance.players.credentials AREA FOLDER` makes the folder and prints the area's flags, one a line, for a server that is
started by hand; `record` and `replay` take the same folder. In areas.json `{folder}` stands for it and `{issuer}` for the URL of
`token_servers.py`, which runs as long as it is needed.

A scenario names what it presents: `"tokens": {NAME: {"key", "header", "claims", "spoilt"}}`, `${token.NAME}` in requests
(`${token64.NAME}`: in base64url, as WebSockets' subprotocols have it), and
`"certificates": {NAME: {"name", "groups", "days", "authority", "usage", "intermediate"}}`, `"certificate": NAME` in requests.
Claims may refer to answers, and `now+600` is a time.
"""

import argparse
import base64
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from jwt.algorithms import get_default_algorithms

HERE: Final = Path(__file__).parents[1]
# The version that areas and scripts are recorded from, unless an area's flags name another; a flag of this package's servers.
RECORDED: Final = "--kubernetes-version=1.36"
_TIME: Final = re.compile(r"now([+-]\d+)")
# name of a key's file -> the algorithm that it is used with
KEYS: Final = {
    "first": "RS256",
    "second": "ES256",
    "third": "ES384",
    "stranger": "ES256",
    "issuer": "RS256",
    "issuer2": "ES256",
}
_PUBLISHED: Final = ("issuer", "issuer2")


class Credentials:
    """A prepared folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def url(self) -> str:
        """Returns the URL at which token_servers.py listens."""
        return (self.folder / "url").read_text()

    def flags(self, area: str) -> list[str]:
        """The area's flags, with places filled in; files with places as well."""
        for template in (HERE / "area_files").glob("*"):
            (self.folder / template.name).write_text(self.placed(template.read_text()))
        return [self.placed(flag) for flag in _flags(area)]

    def placed(self, text: str) -> str:
        authority = (self.folder / "ca.crt").read_text()
        indented = authority.replace("\n", "\n      ").rstrip()
        return text.replace("{folder}", str(self.folder)).replace("{issuer}", self.url).replace("{authority}", indented)

    def token(self, spec: Mapping[str, Any]) -> str:
        """A signed token; `spoilt` is put in the place of its signature."""
        name = spec.get("key", "first")
        key, algorithm = key_of(self.folder, name), spec.get("algorithm", KEYS[name])
        header = {
            "alg": algorithm,
            **({"kid": kid} if (kid := spec.get("kid", key_id(key))) else {}),
            **spec.get("header", {}),
        }
        claims = json.loads(_TIME.sub(lambda found: str(int(time.time()) + int(found[1])), json.dumps(spec["claims"])))
        claims = {
            name: int(value) if name in ("exp", "nbf", "iat") and _is_number(value) else value
            for name, value in claims.items()
        }
        text = json.dumps(claims).replace("{issuer}", self.url).encode()
        signed = f"{_segment(json.dumps(header).encode())}.{_segment(text)}"
        signature = get_default_algorithms()[algorithm].sign(signed.encode(), key)
        return f"{signed}.{spec.get('spoilt', _segment(signature))}"

    def certificate(self, name: str, spec: Mapping[str, Any]) -> Path:
        """A PEM file with a client certificate, its chain and its key."""
        path = self.folder / f"client-{name.replace(' ', '-')}.pem"
        if not path.exists():
            issuer_name = spec.get("authority", "ca")
            issuer, issuer_key = _authority(self.folder, issuer_name)
            chain = b""
            if spec.get("intermediate"):
                between = ec.generate_private_key(ec.SECP256R1())
                made = new_certificate(_name("between"), between, issuer.subject, issuer_key, is_authority=True)
                issuer, issuer_key, chain = made, between, made.public_bytes(Encoding.PEM)
            key = ec.generate_private_key(ec.SECP256R1())
            usage = {"client": ExtendedKeyUsageOID.CLIENT_AUTH, "server": ExtendedKeyUsageOID.SERVER_AUTH}
            found = new_certificate(
                _name(spec.get("name", ""), spec.get("groups", [])),
                key,
                issuer.subject,
                issuer_key,
                days=spec.get("days", 1),
                start=spec.get("start", -2),
                usage=usage.get(spec.get("usage", "client")),
            )
            path.write_bytes(found.public_bytes(Encoding.PEM) + chain + private_pem(key))
        return path


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and value.isdigit()


def _flags(area: str) -> list[str]:
    """Returns the area's flags in areas.json."""
    flags: dict[str, list[str]] = json.loads((HERE / "areas.json").read_text())
    return flags.get(area, [])


def with_version(flags: Sequence[str]) -> list[str]:
    """The flags for a server of this package that replays recordings: with their version, unless the flags name another."""
    name, _, _ = RECORDED.partition("=")
    return [*flags] if any(flag.startswith(f"{name}=") for flag in flags) else [*flags, RECORDED]


def needs_credentials(area: str) -> bool:
    return any("{" in flag for flag in _flags(area))


@contextmanager
def started(area: str) -> Iterator[tuple[list[str], Credentials | None]]:
    """An area's flags, and credentials in a folder of their own where it needs any."""
    if not needs_credentials(area):
        yield _flags(area), None
        return
    with tempfile.TemporaryDirectory() as folder, prepared(Path(folder)) as credentials:
        yield credentials.flags(area), credentials


@contextmanager
def prepared(folder: Path) -> Iterator[Credentials]:
    """Makes what isn't there yet, and runs token_servers.py."""
    make(folder)
    command = [sys.executable, "-m", "conformance.players.token_servers", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent) as servers:
        assert servers.stdout is not None
        try:
            (folder / "url").write_text(servers.stdout.readline().strip())
            yield Credentials(folder)
        finally:
            servers.terminate()


def make(folder: Path) -> None:
    """Creates authorities (for clients, for front proxies, and one that no server trusts), a serving certificate, keys, and the documents
    that publish some of them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "jwks.json").exists():
        return
    for name in ("ca", "other", "proxy"):
        key = ec.generate_private_key(ec.SECP256R1())
        made = new_certificate(_name(name), key, _name(name), key, is_authority=True)
        (folder / f"{name}.key").write_bytes(private_pem(key))
        (folder / f"{name}.crt").write_bytes(made.public_bytes(Encoding.PEM))
    issuer, issuer_key = _authority(folder, "ca")
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    serving = new_certificate(_name("127.0.0.1"), key, issuer.subject, issuer_key, names=names)
    (folder / "serving.pem").write_bytes(serving.public_bytes(Encoding.PEM) + private_pem(key))
    published = []
    for name, algorithm in KEYS.items():
        signing = _new_key(algorithm)
        (folder / f"{name}.key").write_bytes(private_pem(signing))
        public = signing.public_key()
        (folder / f"{name}.pub").write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        if name in _PUBLISHED:
            jwk = get_default_algorithms()[algorithm].to_jwk(public, as_dict=True)
            published.append({**jwk, "kid": key_id(signing), "use": "sig", "alg": algorithm})
    (folder / "jwks.json").write_text(json.dumps({"keys": published}))


def _new_key(algorithm: str) -> Any:
    if algorithm == "RS256":
        return rsa.generate_private_key(65537, 2048)
    return ec.generate_private_key(ec.SECP256R1() if algorithm == "ES256" else ec.SECP384R1())


def key_of(folder: Path, name: str) -> Any:
    return load_pem_private_key((folder / f"{name}.key").read_bytes(), None)


def key_id(key: Any) -> str:
    """Returns the key id that kube-apiserver derives from a key."""
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    digest = hashes.Hash(hashes.SHA256())
    digest.update(der)
    return _segment(digest.finalize())


def _authority(folder: Path, name: str) -> tuple[x509.Certificate, Any]:
    return x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes()), key_of(folder, name)


def _name(common_name: str, organizations: Any = ()) -> x509.Name:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*names, *([x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else [])])


def new_certificate(
    subject: x509.Name,
    key: Any,
    issuer: x509.Name,
    issuer_key: Any,
    *,
    is_authority: bool = False,
    days: int = 30,
    start: int = -2,
    usage: Any = None,
    names: x509.SubjectAlternativeName | None = None,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now + timedelta(days=start)).not_valid_after(now + timedelta(days=days))
    if is_authority:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def private_pem(key: Any) -> bytes:
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem


def _segment(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("area")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with prepared(arguments.folder.absolute()) as credentials:
        print("\n".join(credentials.flags(arguments.area)), flush=True)
        print("interrupt me when the servers are stopped", file=sys.stderr)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            return 0


if __name__ == "__main__":
    sys.exit(main())
