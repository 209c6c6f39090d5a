"""The providers of an EncryptionConfiguration, as they transform values for etcd: `k8s:enc:PROVIDER:v1:KEY:` and what is encrypted.

Upstream: k8s.io/apiserver/pkg/storage/value/{transformer.go,encrypt/{aes,identity,secretbox}}.
"""

import secrets
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from fakeapiserver.storage.encryption import xsalsa20

PREFIX: Final = b"k8s:enc:"
_IV_SIZE: Final = 16
_NONCE_SIZE: Final = 12


class DecryptionFailed(ValueError):
    """A value can't be decrypted. The text is the rest of a sentence whose subject is the key in etcd."""


class Cipher(Protocol):
    """Encrypts with one key. `context` is the value's key in etcd, to which a value may be bound."""

    def encrypt(self, data: bytes, context: bytes) -> bytes: ...

    def decrypt(self, data: bytes, context: bytes) -> bytes:
        """Raises ValueError."""


class AESCBC(Struct, frozen=True):
    """AES in CBC mode with PKCS #7 padding, behind a random vector. It doesn't notice changes."""

    key: bytes

    def encrypt(self, data: bytes, context: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher as Ciphers
        from cryptography.hazmat.primitives.ciphers import algorithms, modes

        vector = secrets.token_bytes(_IV_SIZE)
        size = _IV_SIZE - len(data) % _IV_SIZE
        encryptor = Ciphers(algorithms.AES(self.key), modes.CBC(vector)).encryptor()
        return vector + encryptor.update(data + bytes([size]) * size) + encryptor.finalize()

    def decrypt(self, data: bytes, context: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher as Ciphers
        from cryptography.hazmat.primitives.ciphers import algorithms, modes

        if len(data) < 2 * _IV_SIZE or len(data) % _IV_SIZE:
            raise ValueError("it is not made of whole blocks")
        decryptor = Ciphers(algorithms.AES(self.key), modes.CBC(data[:_IV_SIZE])).decryptor()
        padded = decryptor.update(data[_IV_SIZE:]) + decryptor.finalize()
        size = padded[-1]
        if not 0 < size <= _IV_SIZE or padded[-size:] != bytes([size]) * size:
            raise ValueError("the key is another one, or the value was changed")
        return padded[:-size]


class AESGCM(Struct, frozen=True):
    """AES in GCM mode, behind a random nonce, bound to the key in etcd."""

    key: bytes

    def encrypt(self, data: bytes, context: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers import aead

        nonce = secrets.token_bytes(_NONCE_SIZE)
        return nonce + aead.AESGCM(self.key).encrypt(nonce, data, context)

    def decrypt(self, data: bytes, context: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers import aead

        try:
            return aead.AESGCM(self.key).decrypt(data[:_NONCE_SIZE], data[_NONCE_SIZE:], context)
        except (InvalidTag, ValueError):
            raise ValueError("the key is another one, or the value was changed or moved") from None


class Secretbox(Struct, frozen=True):
    """XSalsa20 and Poly1305, behind a random nonce."""

    key: bytes

    def encrypt(self, data: bytes, context: bytes) -> bytes:
        nonce = secrets.token_bytes(xsalsa20.NONCE_SIZE)
        return nonce + xsalsa20.seal(self.key, nonce, data)

    def decrypt(self, data: bytes, context: bytes) -> bytes:
        if len(data) < xsalsa20.NONCE_SIZE + xsalsa20.TAG_SIZE:
            raise ValueError("it is too short")
        return xsalsa20.open_box(self.key, data[: xsalsa20.NONCE_SIZE], data[xsalsa20.NONCE_SIZE :])


class Key(Struct, frozen=True):
    """A cipher and the prefix of the values that it makes; without a cipher, values are plain."""

    prefix: bytes
    cipher: Cipher | None


def key_of(provider: str, name: str, cipher: Cipher) -> Key:
    """The key `name` of a provider."""
    return Key(b"%b%b:v1:%b:" % (PREFIX, provider.encode(), name.encode()), cipher)


IDENTITY: Final = Key(b"", None)


class Encryption(Struct, frozen=True):
    """The keys for the values of some resources: the first one encrypts, each decrypts what was encrypted with it."""

    keys: Sequence[Key]

    def encrypt(self, data: bytes, context: bytes) -> bytes:
        first = self.keys[0]
        return data if first.cipher is None else first.prefix + first.cipher.encrypt(data, context)

    def decrypt(self, data: bytes, context: bytes) -> bytes:
        """Raises DecryptionFailed."""
        if not data.startswith(PREFIX):
            if IDENTITY in self.keys:
                return data
            raise DecryptionFailed("is not encrypted, and the provider identity isn't among those of its resource")
        failure = ""
        for key in self.keys:
            if key.cipher is not None and data.startswith(key.prefix):
                try:
                    return key.cipher.decrypt(data[len(key.prefix) :], context)
                except ValueError as error:
                    failure = str(error)
        if failure:
            raise DecryptionFailed(f"can't be decrypted: {failure}")
        raise DecryptionFailed(f"is encrypted with a key that isn't there: {_named(data)}")


PLAIN: Final = Encryption((IDENTITY,))


def _named(data: bytes) -> str:
    """`k8s:enc:aescbc:v1:key1:…` -> the provider and its key."""
    parts = data[len(PREFIX) :][:256].split(b":")
    names = [part.decode(errors="backslashreplace") for part in (parts[0], parts[2] if len(parts) > 2 else b"")]
    return f"{names[1]} of {names[0]}"
