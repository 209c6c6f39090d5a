"""Opens TLS connections. The error about a certificate that has expired says when, as Go's does (upstream: crypto/x509/verify.go).

OpenSSL's error doesn't have the certificate, so that it is asked for again.
"""

import asyncio
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from fakeapiserver.apimachinery.timestamp import rfc3339

# What OpenSSL's verification ends with: not yet valid, expired.
_OUTSIDE: Final = frozenset((9, 10))
_SECONDS: Final = 5.0


class CertificateOutsideItsTime(ssl.SSLCertVerificationError):
    """A certificate has expired, or isn't valid yet: `limit` is its end or its beginning, in seconds of Unix time as `now`."""

    def __init__(self, now: float, limit: float) -> None:
        super().__init__()
        relation = "before" if now < limit else "after"
        self.words = (
            "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: "
            f"current time {rfc3339(now)} is {relation} {rfc3339(limit)}"
        )


async def open_tls(
    host: str, port: int, context: ssl.SSLContext, server_name: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects. Raises OSError, as CertificateOutsideItsTime for such a certificate."""
    try:
        return await asyncio.open_connection(host, port, ssl=context, server_hostname=server_name)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _OUTSIDE and (limit := await _limit(host, port, server_name)) is not None:
            raise CertificateOutsideItsTime(datetime.now(UTC).timestamp(), limit) from None
        raise


async def _limit(host: str, port: int, server_name: str) -> float | None:
    """Returns the time that a server's certificate keeps to: its beginning if that is still to come, else its end."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(OSError, ValueError):
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=server_name)
        data = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        from cryptography import x509

        certificate = x509.load_der_x509_certificate(data)
        start = certificate.not_valid_before_utc
        return (start if datetime.now(UTC) < start else certificate.not_valid_after_utc).timestamp()
    return None
