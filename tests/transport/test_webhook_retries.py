"""Tests which responses of a webhook are retried, as in client-go."""

import pytest

from fakeapiserver.transport.webhook import WebhookError


@pytest.mark.parametrize(
    ("status", "is_transient"),
    [
        (400, False),
        (404, False),
        (409, False),
        (429, True),
        (500, True),
        (501, True),
        (502, True),
        (503, False),
        (504, True),
    ],
)
def test_failures_that_may_pass(status: int, is_transient: bool) -> None:
    assert WebhookError("x", status).is_transient is is_transient


def test_retry_after_is_respected() -> None:
    assert WebhookError("x", 503, 1).is_transient
    assert WebhookError("EOF", reset=True).is_transient
