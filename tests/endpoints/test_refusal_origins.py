"""At DEBUG the log shows which code rejected a request, and never what was sent."""

import logging
from pathlib import Path

import pytest

from fakeapiserver import Cluster
from fakeapiserver.apimachinery import field
from tests.plain_client import Client

pytestmark = pytest.mark.fake_cluster(controllers=())

ROOT = Path(__file__).parents[2]
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "fakeapiserver.refusals"]


@pytest.mark.parametrize(
    ("method", "path", "body", "told", "files"),
    [
        (
            "POST",
            SERVICES,
            {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 70000, "targetPort": 1}]}},
            "422: spec.ports[0].port: Invalid value: must be between 1 and 65535, inclusive",
            # the shared rule, then who asked it
            [
                "registry/core/field_formats.py",
                "registry/core/service/validation.py",
                "registry/core/service/strategy.py",
            ],
        ),
        (
            "POST",
            CONFIG_MAPS,
            {"metadata": {"name": "a", "labels": {"k": "se cret"}}},
            "422: metadata.labels: Invalid value: a valid label must be",
            ["apimachinery/names.py", "registry/generic/validation.py"],
        ),
        (
            "POST",
            CONFIG_MAPS,
            {"metadata": {"name": "a", "namespace": "gone"}},
            "400: BadRequest: the namespace of the provided object does not match",
            ["apimachinery/meta.py", "endpoints/verbs/create.py"],
        ),
        (
            "POST",
            "/api/v1/namespaces/gone/configmaps",
            {"metadata": {"name": "a"}},
            '404: NotFound: namespaces "gone" not found',
            ["admission/plugins/namespacelifecycle.py", "admission/chain.py"],
        ),
        (
            "GET",
            f"{CONFIG_MAPS}/gone",
            None,
            '404: NotFound: configmaps "gone" not found',
            ["endpoints/verbs/get.py", "server/chain.py"],
        ),
    ],
)
def test_a_rejection_names_its_rule(
    fake_cluster: Cluster,
    caplog: pytest.LogCaptureFixture,
    method: str,
    path: str,
    body: object,
    told: str,
    files: list[str],
) -> None:
    with caplog.at_level(logging.DEBUG, "fakeapiserver.refusals"):
        Client(fake_cluster).status(method, path, body)
    (message,) = refusals(caplog)
    first, *places = message.splitlines()
    assert first.startswith(f"{method} {path!r} {told}")
    assert "70000" not in message
    assert "se cret" not in message
    shown = list(dict.fromkeys(place.strip().partition(":")[0] for place in places))
    assert shown[: len(files)] == [f"fakeapiserver/{file}" for file in files]
    assert all((ROOT / file).is_file() for file in shown)


def test_without_a_listener_nothing_is_logged(fake_cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "fakeapiserver.refusals"):
        assert Client(fake_cluster).status("GET", f"{CONFIG_MAPS}/gone") == 404
        assert field.required("spec").origin == ()
    assert refusals(caplog) == []
