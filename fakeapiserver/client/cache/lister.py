"""Reads from an informer's cache as from a server (upstream: k8s.io/client-go/tools/cache/listers.go)."""

from collections.abc import Iterable, Sequence

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.errors import new_not_found
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX, Indexer

__all__ = ["Lister"]


class Lister:
    """Objects are shared by everyone who asks: copy before changing. `resource` is what errors call them, `deployments.apps`."""

    def __init__(self, indexer: Indexer, resource: str, namespace: str = "") -> None:
        self._indexer = indexer
        self._resource = resource
        self._namespace = namespace

    def namespaced(self, namespace: str) -> "Lister":
        """Only those of one namespace."""
        return Lister(self._indexer, self._resource, namespace)

    def list(self, label_selector: str = "") -> Sequence[Object]:
        """Returns the objects that the label selector matches; all without one.

        Raises ValueError for an invalid selector.
        """
        objects: Iterable[Object] = (
            self._indexer.by_index(NAMESPACE_INDEX, self._namespace) if self._namespace else self._indexer.list()
        )
        if not label_selector:
            return [*objects]
        selector = labels.parse(label_selector)
        return [obj for obj in objects if selector.matches(obj["metadata"].get("labels") or {})]

    def get(self, name: str) -> Object:
        """StatusError (404) when the cache has none."""
        key = f"{self._namespace}/{name}" if self._namespace else name
        obj = self._indexer.get_by_key(key)
        if obj is None:
            resource, _, group = self._resource.partition(".")
            raise new_not_found(GroupResource(group, resource), name)
        return obj
