"""The names of all admission plugins, their order and which are on: `--enable-admission-plugins`, `--disable-admission-plugins`.

Upstream: k8s.io/kubernetes/pkg/kubeapiserver/options/plugins.go, k8s.io/apiserver/pkg/server/options/admission.go (1.36).
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Final

from fakeapiserver.admission.chain import Chain, Plugin
from fakeapiserver.admission.interfaces import InitializationError, Initializer
from fakeapiserver.apimachinery.go.quote import go_quote

ORDER: Final = (
    "AlwaysAdmit",
    "NamespaceAutoProvision",
    "NamespaceLifecycle",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "AlwaysPullImages",
    "ImagePolicyWebhook",
    "PodSecurity",
    "PodNodeSelector",
    "Priority",
    "DefaultTolerationSeconds",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PodGroupProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "PodTopologyLabels",
    "PodGroupWorkloadExists",
    "NodeDeclaredFeatureValidator",
    "JobValidation",
    "PodResizeValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
    "AlwaysDeny",
)

DEFAULT_OFF: Final = frozenset(
    {
        "AlwaysAdmit",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "LimitPodHardAntiAffinityTopology",
        "NodeRestriction",
        "AlwaysPullImages",
        "ImagePolicyWebhook",
        "PodNodeSelector",
        "PodTolerationRestriction",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "OwnerReferencesPermissionEnforcement",
        "DenyServiceExternalIPs",
        "AlwaysDeny",
    }
)

# Messages about plugins that upstream has removed.
_REPLACED: Final = {"PodSecurityPolicy": ": it was removed in 1.25, PodSecurity (on by default) takes its place"}

# Each plugin's class stands in plugins/<its name in lower case>.py under the same name.
IMPLEMENTED: Final = frozenset(
    {
        "AlwaysAdmit",
        "AlwaysDeny",
        "AlwaysPullImages",
        "CertificateApproval",
        "CertificateSigning",
        "CertificateSubjectRestriction",
        "ClusterTrustBundleAttest",
        "DefaultIngressClass",
        "DefaultStorageClass",
        "DefaultTolerationSeconds",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "ImagePolicyWebhook",
        "JobValidation",
        "LimitPodHardAntiAffinityTopology",
        "LimitRanger",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionWebhook",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "NamespaceLifecycle",
        "NodeDeclaredFeatureValidator",
        "NodeRestriction",
        "OwnerReferencesPermissionEnforcement",
        "PersistentVolumeClaimResize",
        "PodGroupProtection",
        "PodGroupWorkloadExists",
        "PodNodeSelector",
        "PodResizeValidator",
        "PodSecurity",
        "PodTolerationRestriction",
        "PodTopologyLabels",
        "Priority",
        "ResourceQuota",
        "RuntimeClass",
        "ServiceAccount",
        "StorageObjectInUseProtection",
        "TaintNodesByCondition",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
    }
)


def enabled_plugins(enable: Sequence[str] = (), disable: Sequence[str] = ()) -> list[str]:
    """The names of the plugins that are on, in order. ValueError with upstream's sentences on unknown or contradicting names."""
    errors = [
        f"{flag}-admission-plugins plugin {go_quote(name)} is unknown{_REPLACED.get(name, '')}"
        for flag, name in _named(enable, disable)
    ]
    both = sorted(set(enable) & set(disable))
    if both:
        errors.append(f"[{' '.join(both)}] in enable-admission-plugins and disable-admission-plugins overlapped")
    if errors:
        raise ValueError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    off = (DEFAULT_OFF | set(disable)) - set(enable)
    return [name for name in ORDER if name not in off]


def exactly(names: Sequence[str], *, others_are_named: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the plugins that the older --admission-control turns on and off.

    Raises ValueError with upstream's sentences for unknown names, and if the other two flags are given.
    """
    errors = []
    if others_are_named:
        both = "enable-admission-plugins/disable-admission-plugins"
        errors.append(f"admission-control and {both} flags are mutually exclusive")
    errors += [f"admission-control plugin {go_quote(name)} is unknown" for name in names if name not in ORDER]
    if errors:
        raise ValueError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return tuple(names), tuple(name for name in ORDER if name not in names)


def _named(enable: Sequence[str], disable: Sequence[str]) -> list[tuple[str, str]]:
    named = [("enable", name) for name in enable] + [("disable", name) for name in disable]
    return [(flag, name) for flag, name in named if name not in ORDER]


def new_chain(initializer: Initializer, enable: Sequence[str] = (), disable: Sequence[str] = ()) -> tuple[Chain, str]:
    """The chain of the enabled plugins, and one line of warning (empty when there is nothing to say) naming plugins that were
    asked for by name but do nothing yet."""
    names = enabled_plugins(enable, disable)
    missing = [name for name in names if name in enable and name not in IMPLEMENTED]
    warning = f"admission plugins accepted but not implemented yet: {', '.join(missing)}" if missing else ""
    plugins = [_load(name, initializer) for name in names if name in IMPLEMENTED]
    return Chain(plugins, initializer.instruments, records_steps=initializer.records_steps), warning


def _load(name: str, initializer: Initializer) -> Plugin:
    """ValueError when its configuration won't do."""
    module = import_module(f"fakeapiserver.admission.plugins.{name.lower()}")
    try:
        plugin: Plugin = getattr(module, name)(initializer)
    except ValueError as error:
        failed = "failed to initialize" if isinstance(error, InitializationError) else "couldn't init"
        raise ValueError(f"failed to apply admission: {failed} admission plugin {go_quote(name)}: {error}") from None
    return plugin
