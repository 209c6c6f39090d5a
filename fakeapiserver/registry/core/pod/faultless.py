"""Remembers the pods in which rules have found nothing, so that the pods of one template are judged once.

The rules see nothing of a pod but its spec, the annotations of kubernetes.io and, if a volume is named after the pod, its name: these
decide, and they are what is remembered. Pods of one template also differ in the name of the volume that admission mounts a token with. No
rule reads more from this name than that it is one, and which mounts have it, so another random name doesn't count as a difference.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

from fakeapiserver.apimachinery.meta import Object, annotations, metadata
from fakeapiserver.apis.token_volume import without_name
from fakeapiserver.registry.core.pod.options import PodOptions

_Fault = TypeVar("_Fault")
Rules = Callable[[Object, PodOptions], list[_Fault]]

_MOST: Final = 1024
# Bytes of the largest pod that is remembered.
_LARGEST: Final = 16 * 1024
# A part of each annotation that rules read.
_READ_ANNOTATION: Final = "kubernetes.io/"
_encode: Final = msgspec.json.Encoder().encode


class Faultless(Generic[_Fault]):
    """Judges pods by `rules`, which return errors or warnings."""

    def __init__(self, rules: "Rules[_Fault]") -> None:
        self._rules = rules
        self._known: set[tuple[bytes, PodOptions]] = set()

    def faults(self, pod: Object, options: PodOptions) -> list[_Fault]:
        """Returns what the rules find in the pod."""
        seen = _seen(pod)
        key = without_name(_encode(seen))[0], options
        if key in self._known:
            return []
        faults = self._rules(seen, options)
        if not faults and len(key[0]) <= _LARGEST:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known.add(key)
        return faults


def _seen(pod: Object) -> Object:
    """The part of a pod that rules see."""
    spec, meta = pod["spec"], dict[str, Any]()
    if notes := {key: value for key, value in annotations(pod).items() if _READ_ANNOTATION in key}:
        meta["annotations"] = notes
    if any("ephemeral" in volume for volume in spec.get("volumes") or ()):
        meta["name"] = metadata(pod).get("name", "")
    return {"metadata": meta, "spec": spec}
