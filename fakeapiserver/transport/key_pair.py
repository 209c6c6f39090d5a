"""A certificate with its key, as all parts of the server pass it on."""

from msgspec import Struct


class KeyPair(Struct, frozen=True):
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes
