"""The admissionregistration.k8s.io group."""

from fakeapiserver.registry.generic.strategy import Strategy

_ROW = Strategy(has_generation=True, allow_unconditional_update=False)
RESOURCES = dict.fromkeys(
    (
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ),
    _ROW,
)
