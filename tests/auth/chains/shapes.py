"""Chains of a few shapes; the arguments are their oddities."""

from dataclasses import dataclass
from typing import Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from tests.auth.chains.writing import (
    AUTHORITY,
    CLIENT,
    NULL,
    RSA_SHA256,
    UNKNOWN,
    Certificate,
    Der,
    Extension,
    integer,
    name,
    oid,
    sequence,
    tlv,
    usages,
)


@dataclass(frozen=True)
class Chain:
    """The certificates that a client sends, its own first, and those that the server trusts."""

    sent: tuple[Certificate, ...]
    trusted: tuple[Certificate, ...]


def root(label: str, *extensions: Extension, **how: Any) -> Certificate:
    own = name(f"root {label}")
    signer = how.pop("key", "root")
    given = {"subject": own, "issuer": own, "extensions": (*AUTHORITY, *extensions), **how}
    return Certificate(key=signer, signer=signer, **given)


def below(parent: Certificate, label: str, *extensions: Extension, **how: Any) -> Certificate:
    """An intermediate authority."""
    given = {"extensions": (*AUTHORITY, *extensions), "subject": name(label), "key": f"{label}", **how}
    return Certificate(issuer=parent.subject, signer=parent.key, **given)


def leaf(parent: Certificate, *extensions: Extension, **how: Any) -> Certificate:
    """Jane's certificate for clients, with other extensions."""
    given = {"subject": name("jane"), "key": "leaf", "extensions": (usages(CLIENT), *extensions), **how}
    return Certificate(issuer=parent.subject, signer=parent.key, **given)


ROOT: Final = root("one")


def own(*extensions: Extension, **how: Any) -> Chain:
    """Jane's certificate, signed by the root."""
    return Chain((leaf(ROOT, *extensions, **how),), (ROOT,))


def only(*extensions: Extension, **how: Any) -> Chain:
    """The same with these extensions alone."""
    return own(extensions=extensions, **how)


def under(*extensions: Extension, leaf_ext: tuple[Extension, ...] = (), leaf_how: Any = None, **how: Any) -> Chain:
    """An authority between the root and Jane, with these extensions."""
    middle = below(ROOT, "middle", *extensions, **how)
    return Chain((leaf(middle, *leaf_ext, **(leaf_how or {})), middle), (ROOT,))


def rooted(label: str, *extensions: Extension, leaf_ext: tuple[Extension, ...] = (), **how: Any) -> Chain:
    """A root with these extensions."""
    authority = root(label, *extensions, **how)
    return Chain((leaf(authority, *leaf_ext),), (authority,))


def two_below(label: str, *extensions: Extension, **how: Any) -> Chain:
    """A root with these extensions, and another authority between it and Jane."""
    authority = root(label, *extensions, **how)
    middle = below(authority, "middle")
    return Chain((leaf(middle), middle), (authority,))


def deep(count: int) -> Chain:
    """`count` authorities between the root and Jane."""
    authorities = [ROOT]
    for number in range(count):
        authorities.insert(0, below(authorities[0], f"deep {number}"))
    return Chain((leaf(authorities[0]), *authorities[:-1]), (ROOT,))


def with_rsa(label: str, *, k: str = "rsa2048-root", **how: Any) -> Chain:
    """A root with the RSA key `k`."""
    authority = root(label, key=k, algorithm=RSA_SHA256)
    return Chain((leaf(authority, **{"algorithm": RSA_SHA256, **how}),), (authority,))


def with_key(kind: str, algorithm: Der, digest: Any = None) -> Chain:
    """A root with a key of this kind."""
    how = {"algorithm": algorithm, "digest": digest or hashes.SHA256()}
    authority = root(kind, key=f"{kind}-root", **how)
    return Chain((leaf(authority, **how),), (authority,))


_DIGESTS: Final = {256: "2.16.840.1.101.3.4.2.1", 384: "2.16.840.1.101.3.4.2.2", 1: "1.3.14.3.2.26"}


def pss(digest: int, salt: int, mask: int = 0) -> Der:
    """RSASSA-PSS with its parameters."""
    first, second = (sequence(oid(_DIGESTS[item]), NULL) for item in (digest, mask or digest))
    generation = sequence(oid("1.2.840.113549.1.1.8"), second)
    return sequence(
        oid("1.2.840.113549.1.1.10"), sequence(tlv(0xA0, first), tlv(0xA1, generation), tlv(0xA2, integer(salt)))
    )


def salted(salt: int, digest: Any = hashes.SHA256) -> Any:
    return padding.PSS(padding.MGF1(digest()), salt)


def extension(value: bytes, critical: bool = False, o: str = UNKNOWN) -> Extension:
    return Extension(o, value, critical)


def policy_limit(tag: int, value: int, critical: bool = True) -> Extension:
    """Policy constraints: 0x80 requires an explicit policy, 0x81 inhibits mapping, after so many certificates."""
    return extension(sequence(tlv(tag, bytes([value]))), critical, "2.5.29.36")


def mapped(policy: str, subject_policy: str) -> Extension:
    return extension(sequence(sequence(oid(policy), oid(subject_policy))), True, "2.5.29.33")
