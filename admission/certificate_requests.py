"""The contents of a certificate signing request."""

from base64 import b64decode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.x509 import Name

_PEM_TYPE = b"-----BEGIN CERTIFICATE REQUEST-----"


def subject(request: str) -> "Name":
    """Returns the subject of a PEM request in base64. Raises ValueError in the words of upstream's certapi.ParseCSR."""
    from cryptography import x509

    data = b64decode(request)
    if _PEM_TYPE not in data:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    return x509.load_pem_x509_csr(data).subject
