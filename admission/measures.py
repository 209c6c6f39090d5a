"""The metrics of plugins, webhooks and policies.

Upstream: k8s.io/apiserver/pkg/admission/metrics/metrics.go, pkg/admission/plugin/policy/validating/metrics/metrics.go,
k8s.io/pod-security-admission/metrics/metrics.go.
"""

from typing import Final, Literal

from fakeapiserver.apimachinery.instruments import Family

_WEBHOOK: Final = "apiserver_admission_webhook"
_MATCH: Final = "apiserver_admission_match_condition"
_POLICY: Final = "apiserver_validating_admission_policy_check"
_CONDITION_LABELS: Final = ("kind", "name", "operation", "type")
_POLICY_LABELS: Final = ("enforcement_action", "error_type", "policy", "policy_binding")

Step = Literal["admit", "validate"]
_LABELS: Final = ("operation", "rejected", "type")
_BOUNDS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)

PLUGIN_SECONDS: Final = Family(
    "apiserver_admission_controller_admission_duration_seconds",
    "Seconds that plugins took",
    ("name", *_LABELS),
    _BOUNDS,
)
STEP_SECONDS: Final = Family(
    "apiserver_admission_step_admission_duration_seconds", "Seconds that steps of admission took", _LABELS, _BOUNDS
)
WEBHOOK_REQUESTS: Final = Family(
    f"{_WEBHOOK}_request_total",
    "Calls of admission webhooks, by what became of them",
    ("code", "name", "operation", "rejected", "type"),
)
WEBHOOK_SECONDS: Final = Family(
    f"{_WEBHOOK}_admission_duration_seconds",
    "Seconds that admission webhooks took",
    ("name", "operation", "rejected", "type"),
    (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25),
)
WEBHOOK_REJECTIONS: Final = Family(
    f"{_WEBHOOK}_rejection_count",
    "Requests that admission webhooks, or failures to call them, have refused",
    ("error_type", "name", "operation", "rejection_code", "type"),
)
WEBHOOKS_FAILED_OPEN: Final = Family(
    f"{_WEBHOOK}_fail_open_count", "Failures of admission webhooks that were ignored", ("name", "type")
)
CONDITION_SECONDS: Final = Family(
    f"{_MATCH}_evaluation_seconds",
    "Seconds that match conditions took",
    _CONDITION_LABELS,
    (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25),
)
CONDITION_EXCLUSIONS: Final = Family(
    f"{_MATCH}_exclusions_total", "Requests that match conditions kept from webhooks", _CONDITION_LABELS
)
CONDITION_ERRORS: Final = Family(
    f"{_MATCH}_evaluation_errors_total", "Match conditions that could not be evaluated", _CONDITION_LABELS
)
POLICY_CHECKS: Final = Family(
    f"{_POLICY}_total", "Validations that failed, by what their bindings made of it", _POLICY_LABELS
)
POLICY_SECONDS: Final = Family(
    f"{_POLICY}_duration_seconds",
    "Seconds that validations took which failed",
    _POLICY_LABELS,
    (0.0000005, 0.001, 0.01, 0.1, 1.0),
)
POD_SECURITY_EVALUATIONS: Final = Family(
    "pod_security_evaluations_total",
    "Evaluations of Pod Security's policies",
    ("decision", "mode", "policy_level", "policy_version", "request_operation", "resource", "subresource"),
)
POD_SECURITY_EXEMPTIONS: Final = Family(
    "pod_security_exemptions_total",
    "Requests that Pod Security doesn't look at",
    ("request_operation", "resource", "subresource"),
)
