"""What is counted of those who came in, and of those who didn't."""

from fakeapiserver.apimachinery.errors import new_unauthorized
from fakeapiserver.apis import scheme
from fakeapiserver.apis.resource_table import ResourceTable
from fakeapiserver.server.metrics import Metrics


def test_names_are_told_of_a_few_users_only() -> None:
    metrics = Metrics(ResourceTable(scheme.load()), lambda _: 0, 0.0)
    for name in ("admin", "jane@example.com", "system:serviceaccount:a:b", "jane"):
        metrics.authentication.succeeded(name, 0.001)
    refused = new_unauthorized()
    refused.__cause__ = ValueError("expired")
    metrics.authentication.refused(refused, 0.001)
    metrics.authentication.refused(new_unauthorized(), 0.001)
    lines = [line for line in metrics.render().decode().splitlines() if line.startswith("authenti")]
    assert [line for line in lines if "bucket" not in line and "_sum" not in line] == [
        'authenticated_user_requests{username="admin"} 1.0',
        'authenticated_user_requests{username="email_id"} 1.0',
        'authenticated_user_requests{username="other"} 2.0',
        'authentication_attempts{result="error"} 1.0',
        'authentication_attempts{result="failure"} 1.0',
        'authentication_attempts{result="success"} 4.0',
        'authentication_duration_seconds_count{result="error"} 1.0',
        'authentication_duration_seconds_count{result="failure"} 1.0',
        'authentication_duration_seconds_count{result="success"} 4.0',
    ]
