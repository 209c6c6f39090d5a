"""Answers calls of webhooks and aggregated API servers in place of them, or raises the error of a connection.

The callers word it as they word what a real server does (transport/webhook.py, transport/round_trip.py).
"""

import asyncio
import ssl
from typing import Final

from fakeapiserver.clock import Timers, sleep
from fakeapiserver.faults.rule import Fault
from fakeapiserver.transport.tls_dial import CertificateOutsideItsTime
from fakeapiserver.transport.webhook import Response, check_host

# OpenSSL's code X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY.
_UNKNOWN: Final = 20
# Seconds since an expired certificate ended.
_EXPIRED_SINCE: Final = 3600
_OTHER_NAME: Final = {"subjectAltName": (("DNS", "other.example.com"),)}


async def answer(
    fault: Fault, server_name: str, clock: Timers, seconds: float, removed: asyncio.Event
) -> Response | None:
    """Returns the answer of a server, or None if the call goes on, after `seconds`. Raises OSError.

    A server that hangs does so until the fault is removed; then the call goes on. The caller has a time-out. `server_name`: for which the
    certificate should be.
    """
    if fault.hang:
        await removed.wait()
        return None
    if seconds:
        await sleep(clock, seconds)
    if fault.reset:
        raise ConnectionResetError
    if fault.certificate == "name":
        check_host(server_name, _OTHER_NAME)
    if fault.certificate == "expired":
        raise CertificateOutsideItsTime(clock.now(), clock.now() - _EXPIRED_SINCE)
    if fault.certificate:
        error = ssl.SSLCertVerificationError()
        error.verify_code = _UNKNOWN
        raise error
    if fault.malformed:
        return Response(200, {"content-type": "application/json"}, b"malformed")
    if fault.status:
        headers = {"content-type": "text/plain; charset=utf-8"}
        if fault.retry_after:
            headers["retry-after"] = str(fault.retry_after)
        return Response(fault.status, headers, fault.message.encode())
    return None
