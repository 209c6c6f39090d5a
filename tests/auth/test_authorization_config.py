"""The file of --authorization-config: its meaning, and upstream's error messages for invalid files."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver.auth.authorization_config import AuthorizerConfiguration, WebhookConfiguration, read

VERSION = "apiserver.config.k8s.io/v1"
RBAC = {"type": "RBAC", "name": "rbac"}
UNKNOWN_KIND = 'strict decoding error: unknown field "KIND"'
NO_TEXT = "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go struct field .kind of type string"
FAILED = "failed to load AuthorizationConfiguration from file: "


def file(*authorizers: dict[str, Any], **more: Any) -> bytes:
    document = {"apiVersion": VERSION, "kind": "AuthorizationConfiguration", "authorizers": authorizers}
    return json.dumps(document | more).encode()


def hook(kubeconfig: str = "/etc/hostname", **more: Any) -> dict[str, Any]:
    settings = {
        "timeout": "3s",
        "subjectAccessReviewVersion": "v1",
        "matchConditionSubjectAccessReviewVersion": "v1",
        "failurePolicy": "Deny",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": kubeconfig},
    }
    return {"type": "Webhook", "name": "hook", "webhook": settings | more}


def test_defaults() -> None:
    kubeconfig = Path(__file__)
    conditions = [{"expression": "request.user != ''"}]
    found = read(file(hook(str(kubeconfig), cacheUnauthorizedRequests=False, matchConditions=conditions), RBAC))
    webhook = WebhookConfiguration(
        timeout=3.0,
        authorized_ttl=300.0,
        unauthorized_ttl=0.0,
        version="v1",
        denies_on_failure=True,
        kubeconfig=kubeconfig,
        match_conditions=("request.user != ''",),
    )
    assert found == (AuthorizerConfiguration("Webhook", "hook", webhook), AuthorizerConfiguration("RBAC", "rbac"))


def test_yaml_is_read_too() -> None:
    text = f"apiVersion: {VERSION}\nkind: AuthorizationConfiguration\nauthorizers:\n- {{type: RBAC, name: rbac}}\n"
    assert read(text.encode()) == (AuthorizerConfiguration("RBAC", "rbac"),)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "authorizers: Required value: at least one authorization mode must be defined"),
        (b"{", FAILED + "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (b"kind: X", FAILED + "Object 'apiVersion' is missing in 'kind: X'"),
        (
            file(kind="X"),
            FAILED + f'no kind "X" is registered for version "{VERSION}" in scheme "pkg/runtime/scheme.go:111"',
        ),
        (file(RBAC, extra=1), FAILED + 'strict decoding error: unknown field "extra"'),
        (f"KIND: AuthorizationConfiguration\napiVersion: {VERSION}\n".encode(), FAILED + UNKNOWN_KIND),
        (f'{{"apiVersion": "{VERSION}", "kind": "X", "KIND": []}}'.encode(), FAILED + NO_TEXT),
        (file(hook(timeout="")), FAILED + 'time: invalid duration ""'),
        (file(hook(timeout=None)), FAILED + 'time: invalid duration ""'),
        (file(hook(authorizedTTL="x", unknown=1)), FAILED + 'time: invalid duration "x"'),
        (
            file(hook(connectionInfo={"type": "InClusterConfig", "kubeConfigFile": ""})),
            'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "": can only be set when type=KubeConfigFile',
        ),
        (file({"name": "x"}), "authorizers[0].type: Required value"),
        (
            file({"type": "Magic", "name": "x"}),
            'authorizers[0].type: Unsupported value: "Magic": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", '
            '"RBAC", "Webhook"',
        ),
        (file(RBAC, RBAC), 'authorizers[1].type: Duplicate value: "RBAC"'),
        (file({"type": "RBAC", "name": "x"}), "expected name rbac for authorizer RBAC instead of x"),
        (
            file(RBAC | {"webhook": {}}),
            'authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook',
        ),
        (file(hook(timeout="31s")), 'authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s'),
        (
            file(hook("relative")),
            'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "relative": must be an absolute path',
        ),
        (
            file(hook("/no/file")),
            'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "/no/file": error loading file: stat /no/file: '
            "no such file or directory",
        ),
        (
            file(hook(__file__, matchConditions=[{"expression": "1"}, {"expression": " "}])),
            '[authorizers[0].matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int, '
            "authorizers[0].matchConditions[1].expression: Required value]",
        ),
    ],
)
def test_refusals(content: bytes, complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}$"):
        read(content)


def test_a_mode_must_stay_when_the_file_is_read_again() -> None:
    with pytest.raises(ValueError, match=r"missing required types: \[Node\]"):
        read(file(RBAC), frozenset({"RBAC", "Node"}))
