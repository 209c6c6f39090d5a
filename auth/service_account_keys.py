"""The keys that service account tokens are signed and checked with, from files or made on the spot.

Upstream: k8s.io/client-go/util/keyutil, pkg/serviceaccount/jwt.go. cryptography and jwt are imported with the first token.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from fakeapiserver.transport.files import read_file

_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)
_RSA: Final = ("RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {256: "ES256", 384: "ES384", 521: "ES512"}


class ServiceAccountKeys:
    """`signing` is the private key's file (None: a key is made), `verifying` the files of public keys, private keys or
    certificates that tokens are accepted from as well. Nothing is read before it is needed."""

    def __init__(self, signing: Path | None = None, verifying: Sequence[Path] = ()) -> None:
        self._signing_file = signing
        self._verifying_files = tuple(verifying)
        self._shared: ServiceAccountKeys | None = None
        self._made: Any = None
        self._making = threading.Lock()

    def share(self, keys: "ServiceAccountKeys") -> None:
        """Signs with the key of another server, which may not have been made yet, where no file is named."""
        self._shared = keys

    def use(self, pem: bytes) -> None:
        """Signs with this private key where no file is named. ValueError if it isn't one."""
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(pem, None)
        algorithm_of(key)
        self._made = key

    def pem(self) -> bytes:
        """The private key that signs, as PKCS #8."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        pem: bytes = self._signing.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return pem

    def sign(self, claims: Mapping[str, Any]) -> str:
        """A compact JWS. OSError and ValueError for an unusable file."""
        key = self._signing
        header = {"alg": algorithm_of(key), "kid": key_id(key.public_key())}
        signed = f"{_segment(header)}.{_segment(claims)}"
        return f"{signed}.{_encode(_algorithm(header['alg']).sign(signed.encode(), key))}"

    def named(self, kid: str) -> list[Any]:
        """The public keys that a token of this key id may have been signed with: all where it names none."""
        return [key for name, key in self._public.items() if kid in ("", name)]

    def verify(self, key: Any, algorithm: str, signed: bytes, signature: bytes) -> bool:
        """Reports whether the key made the signature, with one of its algorithms."""
        return verify(key, algorithm, signed, signature)

    def jwks(self) -> list[dict[str, str]]:
        """The public keys as RFC 7517 has them."""
        return [_jwk(kid, key) for kid, key in self._public.items()]

    def load(self) -> None:
        """Reads the files now. OSError; ValueError for what holds no usable key."""
        for key in (self._signing, *self._public.values()):
            algorithm_of(key)

    @cached_property
    def _signing(self) -> Any:
        if self._signing_file is not None:
            return private_key(self._signing_file)
        if self._shared is not None:
            return self._shared._signing
        from cryptography.hazmat.primitives.asymmetric import ec

        with self._making:  # servers in several threads may share it
            if self._made is None:
                self._made = ec.generate_private_key(ec.SECP256R1())
        return self._made

    @cached_property
    def _public(self) -> dict[str, Any]:
        keys = [key for path in self._verifying_files for key in public_keys(path)]
        if not keys:
            keys = [self._signing.public_key()]
        return {key_id(key): key for key in keys}


def private_key(path: Path) -> Any:
    """The first unencrypted RSA or ECDSA key of a PEM file. OSError; ValueError for none, in upstream's words."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    for block in _BLOCK.finditer(read_file(path)):
        if block[1].endswith(b"PRIVATE KEY"):
            with suppress(ValueError, TypeError, UnsupportedAlgorithm):
                key = load_pem_private_key(block[0], None)
                algorithm_of(key)
                return key
    raise ValueError(f"error reading private key file {path}: data does not contain a valid RSA or ECDSA private key")


def public_keys(path: Path) -> list[Any]:
    """The public keys of a PEM file: its own, those of private keys, those of certificates; other blocks don't matter. OSError;
    ValueError for none, in upstream's words."""
    from cryptography.exceptions import UnsupportedAlgorithm

    keys: list[Any] = []
    for block in _BLOCK.finditer(read_file(path)):
        with suppress(ValueError, TypeError, UnsupportedAlgorithm):
            key = _public_key(block[1], block[0])
            algorithm_of(key)
            keys.append(key)
    if not keys:
        raise ValueError(
            f"error reading public key file {path}: data does not contain any valid RSA or ECDSA public keys"
        )
    return keys


def _public_key(kind: bytes, pem: bytes) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    if kind == b"CERTIFICATE":
        return x509.load_pem_x509_certificate(pem).public_key()
    return load_pem_private_key(pem, None).public_key() if kind.endswith(b"PRIVATE KEY") else load_pem_public_key(pem)


def algorithm_of(key: Any) -> str:
    """The one algorithm that a key is used with; ValueError for others than RSA and ECDSA."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if isinstance(key, rsa.RSAPublicKey | rsa.RSAPrivateKey):
        return "RS256"
    if isinstance(key, ec.EllipticCurvePublicKey | ec.EllipticCurvePrivateKey) and key.curve.key_size in _CURVES:
        return _CURVES[key.curve.key_size]
    raise ValueError("service account keys must be RSA or ECDSA")


def verify(key: Any, algorithm: str, signed: bytes, signature: bytes) -> bool:
    """Reports whether a public key made a signature: RSA keys with any of their algorithms, ECDSA keys with that of their curve."""
    own = algorithm_of(key)
    fits = algorithm == own or (own == "RS256" and algorithm in _RSA)
    return fits and bool(_algorithm(algorithm).verify(signed, key, signature))


def _jwk(kid: str, key: Any) -> dict[str, str]:
    algorithm, numbers = algorithm_of(key), key.public_numbers()
    known = {"use": "sig", "kid": kid, "alg": algorithm}
    if algorithm == "RS256":
        return {**known, "kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}
    size = (key.curve.key_size + 7) // 8
    curve = f"P-{key.curve.key_size}"
    return {**known, "kty": "EC", "crv": curve, "x": _number(numbers.x, size), "y": _number(numbers.y, size)}


def _number(value: int, size: int = 0) -> str:
    return _encode(value.to_bytes(size or (value.bit_length() + 7) // 8))


def key_id(public: Any) -> str:
    """Upstream: keyIDFromPublicKey."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return _encode(hashlib.sha256(der).digest())


def _algorithm(name: str) -> Any:
    from jwt.algorithms import get_default_algorithms

    return get_default_algorithms()[name]


def _segment(value: Mapping[str, Any]) -> str:
    return _encode(json.dumps(value, separators=(",", ":"), sort_keys=True).encode())


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
