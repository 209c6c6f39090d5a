"""Tests the metrics of webhooks, policies, impersonation, watches and deprecated resources. The values are a real kube-apiserver's for the
same requests.
"""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from conformance.exchange import Client
from fakeapiserver import Cluster
from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.clock import SystemClock
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.options.config_reloads import ConfigReloads

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


def metrics_after(requests: list[dict[str, Any]], config: Config | None = None) -> dict[str, float]:
    with Cluster.from_config(config or Config(controllers=())) as cluster:
        client = Client(cluster.url, cluster.token)
        for request in requests:
            client.send(request, [])
        text = client.send({"method": "GET", "path": "/metrics", "accept": "text/plain"}, [])["text"]
    rows = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in rows}


def post(path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"method": "POST", "path": path, "body": body, **more}


def hook(name: str, **more: Any) -> dict[str, Any]:
    client = {"url": "https://127.0.0.1:1/x"}
    return {
        "name": name,
        "clientConfig": client,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": [RULE],
        **more,
    }


CONDITION = {"name": "c", "expression": "request.name == 'closed'"}
HOOKS = [
    hook("open.example.com", failurePolicy="Ignore"),
    hook("closed.example.com", matchConditions=[CONDITION]),
]
POLICY = {
    "matchConstraints": {"resourceRules": [RULE]},
    "validations": [{"expression": "object.metadata.name != 'bad'"}],
}
BINDING = {"policyName": "p.example.com", "validationActions": ["Deny", "Audit"]}


@pytest.mark.parametrize(
    ("requests", "told"),
    [
        (
            [
                post(f"{ADMISSION}/mutatingwebhookconfigurations", {"metadata": {"name": "h"}, "webhooks": HOOKS}),
                post(CONFIG_MAPS, {"metadata": {"name": "a"}}),
                post(CONFIG_MAPS, {"metadata": {"name": "closed"}}),
            ],
            {
                'apiserver_admission_webhook_request_total{code="503",name="open.example.com",operation="CREATE",'
                'rejected="false",type="admit"}': 2,
                'apiserver_admission_webhook_request_total{code="503",name="closed.example.com",operation="CREATE",'
                'rejected="true",type="admit"}': 1,
                'apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",'
                'name="closed.example.com",operation="CREATE",rejection_code="503",type="admit"}': 1,
                'apiserver_admission_webhook_fail_open_count{name="open.example.com",type="admit"}': 2,
                'apiserver_admission_webhook_admission_duration_seconds_count{name="open.example.com",'
                'operation="CREATE",rejected="false",type="admit"}': 2,
                'apiserver_admission_match_condition_exclusions_total{kind="webhook",name="closed.example.com",'
                'operation="CREATE",type="admit"}': 1,
                'apiserver_admission_match_condition_evaluation_seconds_count{kind="webhook",'
                'name="closed.example.com",operation="CREATE",type="admit"}': 1,
            },
        ),
        (
            [
                post(
                    f"{ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": "p.example.com"}, "spec": POLICY}
                ),
                post(f"{ADMISSION}/validatingadmissionpolicybindings", {"metadata": {"name": "b"}, "spec": BINDING}),
                post(CONFIG_MAPS, {"metadata": {"name": "good"}}),
                post(CONFIG_MAPS, {"metadata": {"name": "bad"}}),
            ],
            {
                f'apiserver_validating_admission_policy_check_total{{enforcement_action="{action}",'
                'error_type="invalid_error",policy="p.example.com",policy_binding="b"}': 1
                for action in ("deny", "audit")
            },
        ),
        (
            [
                {"method": "GET", "path": CONFIG_MAPS, "headers": {"Impersonate-User": "jane"}},
                {"method": "GET", "path": CONFIG_MAPS, "headers": {"Impersonate-User": "jane"}, "token": ""},
            ],
            {
                'apiserver_impersonation_attempts_total{decision="allowed",mode="user-info"}': 1,
                'apiserver_impersonation_attempts_total{decision="denied",mode=""}': 1,
            },
        ),
        (
            [
                post(CONFIG_MAPS, {"metadata": {"name": "a"}}),
                {"method": "GET", "path": f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1"},
            ],
            {
                'apiserver_watch_events_total{group="",resource="configmaps",version="v1"}': 1,
                'apiserver_watch_events_sizes_count{group="",resource="configmaps",version="v1"}': 1,
            },
        ),
        (
            [{"method": "GET", "path": "/api/v1/namespaces/default/endpoints"}],
            {
                'apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",'
                'subresource="",version="v1"}': 1
            },
        ),
    ],
)
def test_what_was_done_is_counted(requests: list[dict[str, Any]], told: dict[str, float]) -> None:
    found = metrics_after(requests)
    assert {name: found.get(name) for name in told} == told


def test_pod_security_counts_its_evaluations() -> None:
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    found = metrics_after(
        [
            post("/api/v1/namespaces", {"metadata": {"name": "strict", "labels": labels}}),
            post("/api/v1/namespaces/strict/pods", pod),
        ]
    )
    for mode in ("enforce", "audit"):
        name = (
            f'pod_security_evaluations_total{{decision="deny",mode="{mode}",policy_level="restricted",'
            'policy_version="latest",request_operation="create",resource="pod",subresource=""}'
        )
        assert found[name] == 1


def test_unused_metrics_are_left_out() -> None:
    assert not [name for name in metrics_after([]) if name.startswith("apiserver_admission_webhook")]


def test_a_token_is_looked_for_once() -> None:
    found = metrics_after([{"method": "GET", "path": CONFIG_MAPS}] * 3 + [{"method": "GET", "path": "/", "token": "x"}])
    assert found['authentication_token_cache_request_total{status="hit"}'] == 3  # /metrics too
    assert found['authentication_token_cache_request_total{status="miss"}'] == 2
    assert found['authentication_token_cache_fetch_total{status="ok"}'] == 2


AUTHORIZERS = """
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: hook
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {kubeconfig}}}
    matchConditions: [{{expression: request.user == 'jane'}}]
- {{type: RBAC, name: rbac}}
"""
KUBECONFIG = """
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
"""


def test_questions_to_a_webhook_are_counted(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    file = tmp_path / "authorization.yaml"
    file.write_text(AUTHORIZERS.format(kubeconfig=tmp_path / "kubeconfig"))
    requests: list[dict[str, Any]] = [
        {"method": "GET", "path": CONFIG_MAPS, "headers": {"Impersonate-User": user}} for user in ("jane", "joe")
    ]
    found = metrics_after(requests, Config(controllers=(), authorization_config=file))
    assert found['apiserver_authorization_webhook_evaluations_total{name="hook",result="error"}'] == 1
    assert found['apiserver_authorization_webhook_evaluations_fail_open_total{name="hook",result="error"}'] == 1
    assert found['apiserver_authorization_webhook_duration_seconds_count{name="hook",result="error"}'] == 1
    assert found['apiserver_authorization_match_condition_exclusions_total{name="hook",type="Webhook"}'] == 1
    assert found['apiserver_authorization_match_condition_evaluation_seconds_count{name="hook",type="Webhook"}'] == 2
    (info,) = (name for name in found if name.startswith("apiserver_authorization_config_controller_last_config_info"))
    assert hashlib.sha256(file.read_bytes()).hexdigest() in info


def test_reloads_are_counted() -> None:
    instruments = Instruments()
    reloads = ConfigReloads("authentication", instruments, SystemClock())
    reloads.loaded(b"one")
    reloads.failed()
    reloads.succeeded(b"two")
    told = {
        (family.name.removeprefix("apiserver_authentication_config_controller_"), values[1])
        for family, numbers in instruments.numbers.items()
        for values in numbers
    }
    assert told == {
        *(("automatic_reloads_total", status) for status in ("success", "failure")),
        *(("automatic_reload_last_timestamp_seconds", status) for status in ("success", "failure")),
        ("last_config_info", f"sha256:{hashlib.sha256(b'two').hexdigest()}"),
    }
