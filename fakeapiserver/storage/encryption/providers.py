"""The providers of an EncryptionConfiguration, byte for byte as kube-apiserver's.

- aesgcm: a nonce of 12 bytes, the ciphertext, the tag; the key in etcd is authenticated, too.
- aescbc: an IV of 16 bytes, the ciphertext, padded as in PKCS #7. Nothing is authenticated.
- secretbox: a nonce of 24 bytes, then XSalsa20 with Poly1305.

Upstream: k8s.io/apiserver/pkg/storage/value/encrypt/{aes,secretbox}.
"""

import os
from collections.abc import Callable, Mapping
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from fakeapiserver.storage.encryption.transformers import Plain, Transformer, TransformError

_GCM_NONCE: Final = 12
_GCM_TAG: Final = 16
_BLOCK: Final = 16
_BOX_NONCE: Final = 24
_BOX_TAG: Final = 16
_TOO_SHORT: Final = "the stored data was shorter than the required size"


class GCM:
    """AES-GCM with a random nonce."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def read(self, data: bytes, place: bytes) -> Plain:
        if len(data) < _GCM_NONCE:
            raise TransformError(_TOO_SHORT)
        try:
            if len(data) < _GCM_NONCE + _GCM_TAG:
                raise InvalidTag
            return Plain(self._cipher.decrypt(data[:_GCM_NONCE], data[_GCM_NONCE:], place))
        except InvalidTag:
            raise TransformError("cipher: message authentication failed") from None

    def write(self, value: bytes, place: bytes) -> bytes:
        nonce = os.urandom(_GCM_NONCE)
        return nonce + self._cipher.encrypt(nonce, value, place)


class CBCWithPadding:
    """AES-CBC with a random IV."""

    def __init__(self, key: bytes) -> None:
        self._algorithm = AES(key)

    def read(self, data: bytes, place: bytes) -> Plain:
        if len(data) < _BLOCK:
            raise TransformError(_TOO_SHORT)
        if len(data) % _BLOCK:
            raise TransformError("the stored data is not a multiple of the block size")
        decryptor = Cipher(self._algorithm, CBC(data[:_BLOCK])).decryptor()
        padded = decryptor.update(data[_BLOCK:]) + decryptor.finalize()
        padding = padded[-1:]
        size = padding[0] if padding else 0
        # Upstream allows paddings longer than a block.
        if not 0 < size <= len(padded):
            raise TransformError("invalid PKCS7 data (empty or not padded)")
        if padded[-size:] != padding * size:
            raise TransformError("invalid padding on input")
        return Plain(padded[:-size])

    def write(self, value: bytes, place: bytes) -> bytes:
        iv = os.urandom(_BLOCK)
        size = _BLOCK - len(value) % _BLOCK
        encryptor = Cipher(self._algorithm, CBC(iv)).encryptor()
        return iv + encryptor.update(value + bytes((size,)) * size) + encryptor.finalize()


class Secretbox:
    """NaCl's secret box with a random nonce. Raises ValueError, with one sentence, if the library is missing."""

    def __init__(self, key: bytes) -> None:
        try:
            from nacl.exceptions import CryptoError
            from nacl.secret import SecretBox
        except ImportError as error:
            raise ValueError(
                f"the provider secretbox needs the library PyNaCl ({error}): pip install 'fakeapiserver[etcd]'"
            ) from None
        self._box = SecretBox(key)
        self._error = CryptoError

    def read(self, data: bytes, place: bytes) -> Plain:
        if len(data) < _BOX_NONCE + _BOX_TAG:
            raise TransformError(_TOO_SHORT)
        try:
            return Plain(bytes(self._box.decrypt(data)))
        except self._error:
            # Upstream's text for a wrong key, too.
            raise TransformError("output array was not large enough for encryption") from None

    def write(self, value: bytes, place: bytes) -> bytes:
        return bytes(self._box.encrypt(value))


# Provider -> what its keys make, and the name of its algorithm in upstream's errors.
PROVIDERS: Final[Mapping[str, tuple[Callable[[bytes], Transformer], str]]] = {
    "aesgcm": (GCM, "AES"),
    "aescbc": (CBCWithPadding, "AES"),
    "secretbox": (Secretbox, "Secretbox"),
}
