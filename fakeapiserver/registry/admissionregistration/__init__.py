"""The admissionregistration.k8s.io group."""

from typing import Any

from fakeapiserver.registry.admissionregistration.admission_policy import (
    AdmissionPolicyBindingStrategy,
    AdmissionPolicyStrategy,
)
from fakeapiserver.registry.admissionregistration.webhook_configuration import WebhookConfigurationStrategy
from fakeapiserver.registry.generic.strategy import Strategy

_FACTS: dict[str, Any] = {
    "has_generation": True,
    "allow_unconditional_update": False,
    "kube_finalizers": False,
    "update_meta_checks": ("create",),
    "status_meta_checks": (),
    "status_reset_fields": ("spec", "metadata"),
}
RESOURCES: dict[str, Strategy] = {
    "mutatingadmissionpolicies": AdmissionPolicyStrategy(rules="mutations", has_status=False, **_FACTS),
    "mutatingadmissionpolicybindings": AdmissionPolicyBindingStrategy(acts=False, **_FACTS),
    "mutatingwebhookconfigurations": WebhookConfigurationStrategy(mutating=True, **_FACTS),
    "validatingadmissionpolicies": AdmissionPolicyStrategy(
        rules="validations", has_status=True, status_apply_creates=True, **_FACTS
    ),
    "validatingadmissionpolicybindings": AdmissionPolicyBindingStrategy(acts=True, **_FACTS),
    "validatingwebhookconfigurations": WebhookConfigurationStrategy(mutating=False, **_FACTS),
}
