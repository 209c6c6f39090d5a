"""Random client certificates and their chains."""

import random
import warnings
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from conformance.players import credentials
from conformance.random.credentials.presented import ADMIN, Presented, World


def _name(rng: random.Random) -> x509.Name:
    def one(oid: ObjectIdentifier, text: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return x509.NameAttribute(oid, text, _validate=False)

    uid = ObjectIdentifier("1.3.6.1.4.1.57683.2")
    parts = rng.choice(
        [
            [[one(NameOID.COMMON_NAME, "jane")]],
            [[one(NameOID.ORGANIZATION_NAME, "dev")], [one(NameOID.COMMON_NAME, "jane")]],
            [
                [one(NameOID.COMMON_NAME, "jane")],
                [one(NameOID.ORGANIZATION_NAME, "dev")],
                [one(NameOID.ORGANIZATION_NAME, "ops")],
            ],
            [[one(NameOID.ORGANIZATION_NAME, f"g{i}")] for i in range(60)] + [[one(NameOID.COMMON_NAME, "many")]],
            [[one(NameOID.ORGANIZATION_NAME, "dev"), one(NameOID.COMMON_NAME, "multi")]],
            [[one(NameOID.COMMON_NAME, "a")], [one(NameOID.COMMON_NAME, "b")]],
            [[one(NameOID.COMMON_NAME, "a"), one(NameOID.COMMON_NAME, "b")]],
            [[one(NameOID.ORGANIZATION_NAME, "system:masters")]],
            [[one(NameOID.COMMON_NAME, "jäne ☃")], [one(NameOID.ORGANIZATION_NAME, "gröup")]],
            [[one(NameOID.COMMON_NAME, " jane ")]],
            [[one(NameOID.COMMON_NAME, "jane")], [one(uid, "7")]],
            [[one(NameOID.COMMON_NAME, "jane")], [one(uid, "7")], [one(uid, "8")]],
            [[one(NameOID.COMMON_NAME, "jane"), one(uid, "7")]],
            [[one(NameOID.COMMON_NAME, "jane")], [one(NameOID.ORGANIZATIONAL_UNIT_NAME, "unit")]],
            [[one(NameOID.COMMON_NAME, "a" * 200)]],
            [[one(NameOID.COMMON_NAME, "system:admin")], [one(NameOID.ORGANIZATION_NAME, "")]],
            [[one(NameOID.COMMON_NAME, "front")]],
            [[one(NameOID.COMMON_NAME, "front proxy")]],
            [[one(NameOID.COMMON_NAME, "FRONT")]],
            [[one(NameOID.COMMON_NAME, "a,CN=system:admin")]],
            [[one(NameOID.COMMON_NAME, "nul\0byte")]],
            [],
        ]
    )
    return x509.Name([x509.RelativeDistinguishedName(part) for part in parts])


def _key(rng: random.Random) -> Any:
    kind = rng.choice(["p256"] * 8 + ["p384", "p521", "rsa", "rsa1024", "ed25519"])
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if kind.startswith("rsa"):
        return rsa.generate_private_key(65537, 1024 if kind == "rsa1024" else 2048)
    curves: dict[str, type[ec.EllipticCurve]] = {
        "p256": ec.SECP256R1,
        "p384": ec.SECP384R1,
        "p521": ec.SECP521R1,
    }
    return ec.generate_private_key(curves[kind]())


def _digest(rng: random.Random, key: Any) -> Any:
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    return rng.choice(
        [hashes.SHA256()] * 10 + [hashes.SHA384(), hashes.SHA512(), hashes.SHA224(), hashes.SHA1(), hashes.SHA3_256()]
    )


def _usages(rng: random.Random) -> list[ObjectIdentifier] | None:
    client, server = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
    return rng.choice(
        [[client]] * 8
        + [
            None,
            None,
            [server],
            [client, server],
            [ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE],
            [ExtendedKeyUsageOID.CODE_SIGNING],
            [ObjectIdentifier("1.2.3.4")],
        ]
    )


def _extensions(rng: random.Random, *, is_authority: bool) -> list[tuple[x509.ExtensionType, bool]]:
    basic = x509.BasicConstraints(is_authority, rng.choice([None, None, None, 0, 1]) if is_authority else None)
    found: list[tuple[x509.ExtensionType, bool]] = []
    if is_authority:
        found += rng.choice(
            [[(basic, True)]] * 8 + [[(basic, False)], [], [(x509.BasicConstraints(False, None), True)]]
        )
    elif rng.random() < 0.3:
        found.append((rng.choice([basic, x509.BasicConstraints(True, None)]), rng.random() < 0.5))
    if rng.random() < 0.3:
        found.append((_key_usage(rng), True))
    if rng.random() < 0.25:
        found.append(
            rng.choice(
                [
                    (x509.SubjectAlternativeName([x509.DNSName("good.example")]), False),
                    (x509.SubjectAlternativeName([x509.DNSName("bad.example")]), True),
                    (x509.SubjectAlternativeName([x509.RFC822Name("a@good.example")]), False),
                    (x509.SubjectAlternativeName([x509.UniformResourceIdentifier("spiffe://good.example/x")]), False),
                    (x509.SubjectAlternativeName([x509.UniformResourceIdentifier("https://1.2.3.4/x")]), False),
                    (x509.SubjectAlternativeName([x509.DNSName("*.good.example")]), False),
                    (x509.SubjectAlternativeName([x509.DNSName("")]), False),
                    (x509.SubjectAlternativeName([x509.DirectoryName(x509.Name([]))]), True),
                    (x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), b"\5\0"), rng.random() < 0.5),
                    (x509.CertificatePolicies([x509.PolicyInformation(ObjectIdentifier("1.2.3"), None)]), True),
                    (x509.PolicyConstraints(rng.choice([0, 1]), None), True),
                    (x509.InhibitAnyPolicy(0), True),
                    (x509.OCSPNoCheck(), True),
                ]
            )
        )
    if is_authority and rng.random() < 0.25:
        constraints = rng.choice(
            [
                ([x509.DNSName("good.example")], None),
                (None, [x509.DNSName("good.example")]),
                ([x509.RFC822Name("good.example")], None),
                ([x509.UniformResourceIdentifier(".example")], None),
                ([x509.IPAddress(ip_network("10.0.0.0/8"))], None),
                ([x509.DirectoryName(x509.Name([]))], None),
                ([x509.DNSName("")], None),
                (None, [x509.DNSName("")]),
            ]
        )
        found.append((x509.NameConstraints(*constraints), rng.random() < 0.8))
    return found


def _key_usage(rng: random.Random) -> x509.KeyUsage:
    signs, certifies = rng.random() < 0.7, rng.random() < 0.7
    return x509.KeyUsage(signs, False, False, False, False, certifies, False, False, False)


def _dates(rng: random.Random) -> tuple[datetime, datetime]:
    now, day = datetime.now(UTC).replace(microsecond=0), timedelta(days=1)
    good = (now - day, now + day)
    odd = [
        (now - 2 * day, now - day),
        (now + day, now + 2 * day),
        (now - day, now + timedelta(hours=1)),
        (datetime(1960, 1, 1, tzinfo=UTC), datetime(2199, 1, 1, tzinfo=UTC)),
    ]
    return rng.choice([good] * 10 + odd)


def _issued(
    rng: random.Random,
    subject: x509.Name,
    issuer: x509.Certificate | None,
    issuer_key: Any,
    key: Any,
    *,
    is_authority: bool,
) -> x509.Certificate:
    begins, ends = (
        _dates(rng)
        if not is_authority or rng.random() < 0.3
        else (datetime.now(UTC) - timedelta(days=1), datetime.now(UTC) + timedelta(days=1))
    )
    builder = x509.CertificateBuilder(
        issuer_name=issuer.subject if issuer is not None else subject,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=begins,
        not_valid_after=ends,
    )
    usages = (
        _usages(rng)
        if not is_authority
        else rng.choice([None] * 6 + [[ExtendedKeyUsageOID.CLIENT_AUTH], [ExtendedKeyUsageOID.SERVER_AUTH]])
    )
    if usages is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=rng.random() < 0.2)
    for extension, critical in _extensions(rng, is_authority=is_authority):
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(issuer_key, _digest(rng, issuer_key))


def _chain(rng: random.Random, world: World) -> Path | None:
    """A PEM file with a client's certificate, what it sends with it, and its key; None where it can't be made."""
    path = world.folder / "random-client.pem"
    authority = rng.choice(["ca", "ca", "ca", "ca", "proxy", "other", "narrow", "shallow"])
    issuer: x509.Certificate | None = x509.load_pem_x509_certificate((world.folder / f"{authority}.crt").read_bytes())
    issuer_key = credentials.key_of(world.folder, authority)
    between: list[x509.Certificate] = []
    try:
        for number in range(rng.choice([0, 0, 0, 0, 1, 1, 2, 3])):
            step = _key(rng)
            subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"step {number}")])
            made = _issued(rng, subject, issuer, issuer_key, step, is_authority=True)
            between.insert(0, made)
            issuer, issuer_key = made, step
        key = _key(rng)
        if rng.random() < 0.05:
            issuer, issuer_key = None, key
        leaf = _issued(rng, _name(rng), issuer, issuer_key, key, is_authority=False)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None  # not with this library
    sent = list(between)
    change = rng.randrange(8)
    if change == 0 and sent:
        sent.pop(rng.randrange(len(sent)))
    elif change == 1:
        rng.shuffle(sent)
    elif change == 2:
        sent.append(x509.load_pem_x509_certificate((world.folder / f"{authority}.crt").read_bytes()))
    elif change == 3:
        sent.append(leaf)
    pem = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in [leaf, *sent])
    path.write_bytes(pem + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def certificates(rng: random.Random, world: World) -> Presented | None:
    path = _chain(rng, world)
    if path is None:
        return None
    headers = rng.choice([[], [], [], ["X-Remote-User: boss"], ["X-Remote-User: boss", "X-Remote-Group: a"]])
    token = rng.choice([None, None, None, None, ADMIN, "wrong"])
    return Presented(certificate=path, headers=list(headers), token=token)
