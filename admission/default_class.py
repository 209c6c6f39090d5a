"""The choice of the default class.

Upstream: k8s.io/kubernetes/pkg/volume/util/storageclass.go, plugin/pkg/admission/network/defaultingressclass.
"""

from collections.abc import Sequence

from fakeapiserver.apimachinery.meta import Object, annotations


def default_class(classes: Sequence[Object], *marks: str) -> str:
    """The name of the newest class with one of these annotations set to `true`, by name when equally new; empty when none."""
    defaults = [obj for obj in classes if any(annotations(obj).get(mark) == "true" for mark in marks)]
    defaults.sort(key=lambda obj: str(obj["metadata"]["name"]))
    # A stable sort: equally new ones stay in the order of their names.
    defaults.sort(key=lambda obj: str(obj["metadata"].get("creationTimestamp", "")), reverse=True)
    return str(defaults[0]["metadata"]["name"]) if defaults else ""
