"""The selectors of autoscalers' targets, to find autoscalers that have the same pods.

Upstream: pkg/controller/podautoscaler/hpa_selector_store.go.
"""

from collections.abc import Iterable, Sequence

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.objects import labels_of
from fakeapiserver.controller_runtime.reconcile import Request


class SelectorStore:
    """Selectors by autoscaler. One that isn't known yet selects nothing."""

    def __init__(self) -> None:
        self._selectors: dict[Request, Selector] = {}

    def add(self, autoscaler: Request) -> None:
        self._selectors.setdefault(autoscaler, labels.NOTHING)

    def remove(self, autoscaler: Request) -> None:
        self._selectors.pop(autoscaler, None)

    def set(self, autoscaler: Request, selector: Selector) -> None:
        """Sets the selector of an autoscaler unless it was removed meanwhile."""
        if autoscaler in self._selectors:
            self._selectors[autoscaler] = selector

    def selecting(self, namespace: str, pods: Iterable[Object]) -> Sequence[Request]:
        """Returns the autoscalers that have any of these pods."""
        own = {tuple(sorted(labels_of(pod).items())): labels_of(pod) for pod in pods}.values()
        return [
            autoscaler
            for autoscaler, selector in self._selectors.items()
            if autoscaler.namespace == namespace and any(map(selector.matches, own))
        ]
