"""Checks of bundles of certificate authorities.

Upstream: k8s.io/apiserver/pkg/util/webhook/validation.go; k8s.io/client-go/util/cert/pem.go
"""

import base64
import re
import ssl

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----\s([^-]*)-----END CERTIFICATE-----")


class MalformedCertificate(ValueError):
    """A certificate of a bundle can't be read."""


def check_bundle(name: str, bundle: bytes) -> None:
    """ValueError in upstream's words for a bundle (PEM) that no certificate can be checked against."""
    if not bundle:
        raise ValueError(f'missing content for CA bundle "{name}"')
    if not any(map(_is_base64, _CERTIFICATE.findall(bundle))):
        raise ValueError(
            f'error loading CA bundle for "{name}": data does not contain any valid RSA or ECDSA certificates'
        )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=bundle.decode("ascii", "replace"))
    except ssl.SSLError:
        raise MalformedCertificate(f'error loading CA bundle for "{name}": x509: malformed certificate') from None


def _is_base64(text: bytes) -> bool:
    try:
        return bool(base64.b64decode(b"".join(text.split()), validate=True))
    except ValueError:
        return False
