"""AppArmor annotations that servers up to 1.33 set beside the field, for kubelets that didn't know it.

Upstream: pkg/registry/core/pod/strategy.go (applyAppArmorVersionSkew) of 1.33.
"""

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.pod.security_validation import APPARMOR
from fakeapiserver.registry.core.pod.template import containers_of


def add_apparmor_annotations(pod: Object) -> None:
    """Adds an annotation for each container that has a profile, its own or the pod's, and no annotation, in place."""
    spec = pod["spec"]
    if (spec.get("os") or {}).get("name") == "windows":
        return
    whole = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container in containers_of(spec):
        profile = (container.get("securityContext") or {}).get("appArmorProfile") or whole
        if profile is not None and (text := _annotation(profile)):
            annotations = metadata(pod).get("annotations") or {}
            metadata(pod)["annotations"] = {APPARMOR + container.get("name", ""): text, **annotations}


def _annotation(profile: Object) -> str:
    """The annotation's value for a profile field; empty for a profile that no annotation can name."""
    match profile.get("type"):
        case "Unconfined":
            return "unconfined"
        case "RuntimeDefault":
            return "runtime/default"
        case "Localhost" if profile.get("localhostProfile"):
            return f"localhost/{profile['localhostProfile']}"
    return ""
