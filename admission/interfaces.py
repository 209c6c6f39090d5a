"""What an admission plugin is (upstream: k8s.io/apiserver/pkg/admission/interfaces.go)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from fakeapiserver.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.auth.interfaces import UserInfo

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(slots=True)
class Attributes:
    """One write on its way to storage. `object` is the new object (None on delete), owned by this request, so a mutating
    plugin may change it in place; `old_object` must not be changed."""

    operation: Operation
    kind: GroupVersionKind
    resource: GroupVersionResource
    subresource: str
    namespace: str
    name: str
    object: Object | None
    old_object: Object | None
    user: UserInfo
    dry_run: bool = False
    options: Object = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class Getter(Protocol):
    """Reads stored objects, for plugins that look at other objects. Objects must not be changed."""

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """`resource` is `pods` or `deployments.apps`; None when there is no such object."""

    def list(self, resource: str, namespace: str = "") -> list[Object]:
        """All objects of a resource, in one namespace or (empty) in all."""


@dataclass(frozen=True, slots=True)
class Initializer:
    """What a plugin is made with (upstream: admission initializers). `create_namespace` is NamespaceAutoProvision's."""

    getter: Getter
    create_namespace: Callable[[str], Awaitable[None]] | None = None
    default_not_ready_toleration_seconds: int = 300
    default_unreachable_toleration_seconds: int = 300


@runtime_checkable
class MutationInterface(Protocol):
    def handles(self, operation: Operation) -> bool: ...

    async def admit(self, attributes: Attributes) -> None:
        """Changes `attributes.object` in place, or raises StatusError to refuse."""


@runtime_checkable
class ValidationInterface(Protocol):
    def handles(self, operation: Operation) -> bool: ...

    async def validate(self, attributes: Attributes) -> None:
        """Must not change anything; raises StatusError to refuse."""
