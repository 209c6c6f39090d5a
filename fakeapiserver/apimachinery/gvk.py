"""Names of kinds and resources (upstream: k8s.io/apimachinery/pkg/runtime/schema)."""

from typing import NamedTuple

__all__ = [
    "GroupKind",
    "GroupResource",
    "GroupVersion",
    "GroupVersionKind",
    "GroupVersionResource",
]


class GroupKind(NamedTuple):
    group: str
    kind: str

    def __str__(self) -> str:
        """Upstream's spelling: `Deployment.apps`, and `Pod` for the legacy group."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupResource(NamedTuple):
    group: str
    resource: str

    def __str__(self) -> str:
        """Upstream's spelling: `deployments.apps`, and `pods` for the legacy group."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


class GroupVersion(NamedTuple):
    group: str
    version: str

    def __str__(self) -> str:
        """The wire's `apiVersion`: `apps/v1`, and `v1` for the legacy group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @classmethod
    def parse(cls, api_version: str) -> "GroupVersion":
        """Raises ValueError with upstream's message on more than one slash."""
        if api_version.count("/") > 1:
            raise ValueError(f"unexpected GroupVersion string: {api_version}")
        group, _, version = api_version.rpartition("/")
        return cls(group, version)


class GroupVersionKind(NamedTuple):
    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        """Upstream's spelling in messages: `apps/v1, Kind=Deployment`."""
        return f"{self.api_version}, Kind={self.kind}"

    @property
    def api_version(self) -> str:
        """The text of the group version: `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)


class GroupVersionResource(NamedTuple):
    group: str
    version: str
    resource: str

    def __str__(self) -> str:
        """Upstream's spelling in messages: `apps/v1, Resource=deployments`."""
        return f"{self.group_version}, Resource={self.resource}"

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)
