"""Answers calls of webhooks in place of their server, or raises the error of a connection.

The client words it as it words what a real server does (transport/webhook.py).
"""

import asyncio
import ssl
from typing import Final

from fakeapiserver.clock import Timers
from fakeapiserver.faults.rule import Fault
from fakeapiserver.transport.webhook import Endpoint, Response, check_host

# OpenSSL's codes: X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY and X509_V_ERR_CERT_HAS_EXPIRED.
_VERIFY_CODES: Final = {"unknown": 20, "expired": 10}
_OTHER_NAME: Final = {"subjectAltName": (("DNS", "other.example.com"),)}


async def answer(
    fault: Fault, endpoint: Endpoint, clock: Timers, seconds: float, removed: asyncio.Event
) -> Response | None:
    """Returns the answer of the webhook's server, or None if the call goes on, after `seconds`. Raises OSError.

    A webhook that hangs does so until the fault is removed; then the call goes on. The caller has a time-out.
    """
    if fault.hang:
        await removed.wait()
        return None
    if seconds:
        over = asyncio.Event()
        timer = clock.call_later(seconds, over.set)
        try:
            await over.wait()
        finally:
            timer.cancel()
    if fault.reset:
        raise ConnectionResetError
    if fault.certificate == "name":
        check_host(endpoint.server_name or endpoint.host, _OTHER_NAME)
    if fault.certificate:
        error = ssl.SSLCertVerificationError()
        error.verify_code = _VERIFY_CODES[fault.certificate]
        raise error
    if fault.malformed:
        return Response(200, {"content-type": "application/json"}, b"malformed")
    if fault.status:
        headers = {"content-type": "text/plain; charset=utf-8"}
        if fault.retry_after:
            headers["retry-after"] = str(fault.retry_after)
        return Response(fault.status, headers, fault.message.encode())
    return None
