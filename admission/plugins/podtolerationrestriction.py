"""Pods get the tolerations of their namespace, and may have those that it allows.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/podtolerationrestriction.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapiserver.admission.handler import PODS, Handler
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.admission.tolerations import is_superset, merge_tolerations, toleration_errors
from fakeapiserver.apimachinery.errors import new_not_found, status_error
from fakeapiserver.apimachinery.field import Path
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind
from fakeapiserver.apis.pod_resources import is_best_effort

_DEFAULTS: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
_WHITELIST: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_NAMESPACES: Final = GroupResource("", "namespaces")
_MEMORY_PRESSURE: Final = {
    "key": "node.kubernetes.io/memory-pressure",
    "operator": "Exists",
    "effect": "NoSchedule",
}
_FIELDS: Final[Mapping[str, tuple[type, str]]] = {
    "key": (str, "string"),
    "operator": (str, "v1.TolerationOperator"),
    "value": (str, "string"),
    "effect": (str, "v1.TaintEffect"),
    "tolerationSeconds": (int, "int64"),
}
_KIND: Final = ConfigKind(
    "Configuration",
    ("podtolerationrestriction.admission.k8s.io/v1alpha1",),
    {
        "Configuration": dict.fromkeys(("default", "whitelist"), "[]v1.Toleration"),
        "v1.Toleration": {name: go_type for name, (_, go_type) in _FIELDS.items()},
        "v1.TolerationOperator": "string",
        "v1.TaintEffect": "string",
    },
)
_GO_KINDS: Final[Mapping[type, str]] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
}


class PodTolerationRestriction(Handler):
    resources = frozenset({PODS})

    def __init__(self, initializer: Initializer) -> None:
        super().__init__(initializer)
        self._default, self._whitelist = _read(initializer.configuration.get("PodTolerationRestriction"))

    async def admit(self, attributes: Attributes) -> None:
        pod = attributes.object or {}
        extra: list[Object] = []
        if attributes.operation == "CREATE":
            own = self._of_namespace(attributes.namespace, _DEFAULTS)
            extra += self._default if own is None else own
        if not is_best_effort(pod):
            extra.append(dict(_MEMORY_PRESSURE))
        if extra:
            pod["spec"]["tolerations"] = merge_tolerations(pod["spec"].get("tolerations") or (), extra)
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        tolerations = (attributes.object or {})["spec"].get("tolerations")
        if not tolerations:
            return
        scope, allowed = "namespace", self._of_namespace(attributes.namespace, _WHITELIST)
        if allowed is None:
            scope, allowed = "cluster", self._whitelist
        if allowed and not all(any(is_superset(wide, one) for wide in allowed) for one in tolerations):
            text = "pod tolerations (possibly merged with namespace default tolerations) conflict with its"
            raise status_error(500, "", f"{text} {scope} whitelist")  # upstream's error carries no status

    def _of_namespace(self, name: str, annotation: str) -> Sequence[Object] | None:
        """Returns the tolerations in the namespace's annotation, or None."""
        namespace = self.initializer.getter.get("namespaces", "", name)
        if namespace is None:
            raise new_not_found(_NAMESPACES, name)
        text = (metadata(namespace).get("annotations") or {}).get(annotation)
        if text is None:
            return None
        try:
            return _decode(text) if text else ()
        except ValueError as error:
            raise status_error(500, "", str(error)) from None


def _decode(text: str) -> Sequence[Object]:
    """Tolerations as Go's decoder takes them. ValueError in its words."""
    decoded = json.decode(text.encode())
    if decoded is None:
        return ()
    _check(decoded, list, "Go value of type []v1.Toleration")
    tolerations = [{} if item is None else item for item in decoded]
    for toleration in tolerations:
        _check(toleration, dict, "Go value of type v1.Toleration")
        for name, (wanted, go_type) in _FIELDS.items():
            if toleration.get(name) is not None:
                _check(toleration[name], wanted, f"Go struct field Toleration.{name} of type {go_type}")
    return [{name: item[name] for name in _FIELDS if item.get(name) not in (None, "")} for item in tolerations]


def _check(value: Any, wanted: type, place: str) -> None:
    if type(value) is not wanted:
        raise ValueError(f"json: cannot unmarshal {_GO_KINDS[type(value)]} into {place}")


def _read(document: Object | None) -> tuple[Sequence[Object], Sequence[Object]]:
    """Defaults and whitelist. ValueError."""
    if document is None:
        return (), ()
    document = _KIND.read(document, is_strict=False)
    default, whitelist = document.get("default") or (), document.get("whitelist") or ()
    path = Path("podtolerationrestriction")
    errors = toleration_errors(default, path.child("default")) + toleration_errors(whitelist, path.child("whitelist"))
    if errors:
        raise ValueError(f"invalid config: [{' '.join(str(error) for error in errors)}]")
    return default, whitelist
