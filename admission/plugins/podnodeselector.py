"""Pods of a namespace go to the nodes that its annotation or the configuration names.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/podnodeselector/admission.go, k8s.io/apimachinery/pkg/labels/labels.go.
"""

from collections.abc import Mapping
from typing import Any, Final

from fakeapiserver.admission.handler import PODS, Handler
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.errors import StatusError, new_forbidden, new_not_found, status_error
from fakeapiserver.apimachinery.field import Path, invalid
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import metadata

_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/node-selector"
_DEFAULT: Final = "clusterDefaultNodeSelector"
_NAMESPACES: Final = GroupResource("", "namespaces")


class PodNodeSelector(Handler):
    operations = frozenset({"CREATE"})
    resources = frozenset({PODS})

    def __init__(self, initializer: Initializer) -> None:
        """Upstream reads what it can of the configuration, and complains of nothing."""
        super().__init__(initializer)
        document: Any = initializer.configuration.get("PodNodeSelector")
        plugin_config = document.get("podNodeSelectorPluginConfig") if isinstance(document, dict) else None
        given = plugin_config if isinstance(plugin_config, dict) else {}
        self._selectors = {name: text for name, text in given.items() if isinstance(text, str)}

    async def admit(self, attributes: Attributes) -> None:
        spec = (attributes.object or {})["spec"]
        wanted = self._of_namespace(attributes.namespace)
        selector = spec.get("nodeSelector") or {}
        _check_conflict(attributes, wanted, selector)
        if merged := dict(sorted({**wanted, **selector}.items())):
            spec["nodeSelector"] = merged
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        selector = (attributes.object or {})["spec"].get("nodeSelector") or {}
        _check_conflict(attributes, self._of_namespace(attributes.namespace), selector)
        allowed = _labels(self._selectors.get(attributes.namespace, ""))
        if allowed and any(allowed.get(key) != value for key, value in selector.items()):
            raise _refusal(attributes, "pod node label selector labels conflict with its namespace whitelist")

    def _of_namespace(self, name: str) -> Mapping[str, str]:
        namespace = self.initializer.getter.get("namespaces", "", name)
        if namespace is None:
            raise new_not_found(_NAMESPACES, name)
        annotations = metadata(namespace).get("annotations") or {}
        return _labels(annotations[_ANNOTATION] if _ANNOTATION in annotations else self._selectors.get(_DEFAULT, ""))


def _check_conflict(attributes: Attributes, wanted: Mapping[str, str], selector: Mapping[str, str]) -> None:
    if any(key in selector and selector[key] != value for key, value in wanted.items()):
        raise _refusal(attributes, "pod node label selector conflicts with its namespace node label selector")


def _refusal(attributes: Attributes, reason: str) -> StatusError:
    return new_forbidden(PODS, metadata(attributes.object or {}).get("name", ""), reason)


def _labels(text: str) -> Mapping[str, str]:
    """`a=b, c=d`. StatusError 500 for what isn't that: upstream's error carries no status."""
    node_labels = dict[str, str]()
    for item in text.split(",") if text else ():
        parts = item.split("=")
        if len(parts) != 2:
            raise status_error(500, "", f"invalid selector: [{' '.join(parts)}]")
        key, value = (part.strip() for part in parts)
        if problems := names.is_qualified_name(key):
            raise status_error(500, "", str(invalid(Path(), key, "; ".join(problems))))
        if problems := names.is_valid_label_value(value):
            raise status_error(500, "", str(invalid(Path().key(key), value, "; ".join(problems))))
        node_labels[key] = value
    return node_labels
