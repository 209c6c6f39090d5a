"""The file PROJECT: what a project is called and what was created in it (upstream: kubebuilder's pkg/model/config)."""

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.gvk import GroupKind
from fakeapiserver.controller_runtime.markers import plural_of

FILE: Final = "PROJECT"
_LAYOUT: Final = "fakeapiserver/v1"
_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")


@dataclass(slots=True)
class ProjectResource:
    """A version of a kind; `group` is without the project's domain."""

    group: str
    version: str
    kind: str
    plural: str
    controller: bool = False
    namespaced: bool = True
    defaulting: bool = False
    validation: bool = False
    conversion: bool = False


@dataclass(slots=True)
class Project:
    """`name` is the distribution's, `package` what Python imports."""

    domain: str
    name: str
    resources: list[ProjectResource] = field(default_factory=list)

    def __post_init__(self) -> None:
        for value, what in ((self.domain, "--domain"), (self.name, "--repo")):
            if problems := names.is_dns1123_subdomain(value):
                raise ValueError(f"{what} {value!r}: {problems[0]}")
        if not self.package.isidentifier():
            raise ValueError(f"--repo {self.name!r}: Python can't import {self.package!r}; begin with a letter")

    @property
    def package(self) -> str:
        return re.sub(r"[-.]", "_", self.name)

    def full_group(self, group: str) -> str:
        """`apps.example.com`."""
        return f"{group}.{self.domain}" if group else self.domain

    def resource(self, kind: GroupKind) -> ProjectResource | None:
        """The stored version's entry of a kind, by its full group."""
        found = [row for row in self.resources if (self.full_group(row.group), row.kind) == kind]
        return next((row for row in found if row.conversion), found[0] if found else None)

    @classmethod
    def read(cls, folder: Path) -> "Project":
        """ValueError with one sentence when `folder` holds no project."""
        try:
            found: dict[str, Any] = yaml.safe_load((folder / FILE).read_text())
            resources = [ProjectResource(**row) for row in found.get("resources") or ()]
            return cls(found["domain"], found["projectName"], resources)
        except FileNotFoundError:
            raise ValueError(
                f"there is no file {FILE} here: run `fakeapiserver init` first, or go to the project"
            ) from None
        except (yaml.YAMLError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"the file {FILE} can't be read: {error}") from None

    def write(self, folder: Path) -> None:
        """OSError."""
        resources = [{key: value for key, value in asdict(row).items() if value is not False} for row in self.resources]
        for row, resource in zip(resources, self.resources, strict=True):
            row["namespaced"] = resource.namespaced
        found = {"layout": _LAYOUT, "domain": self.domain, "projectName": self.name, "resources": resources}
        (folder / FILE).write_text(yaml.safe_dump(found, sort_keys=False))


def checked_resource(group: str, version: str, kind: str, plural: str, *, namespaced: bool) -> ProjectResource:
    """ValueError with one sentence for what isn't allowed."""
    if group and (problems := names.is_dns1123_subdomain(group)):
        raise ValueError(f"--group {group!r}: {problems[0]}")
    if not _VERSION.fullmatch(version):
        raise ValueError(f"--version {version!r}: must be like v1, v1beta1 or v2alpha1")
    if not _KIND.fullmatch(kind):
        raise ValueError(f"--kind {kind!r}: must be in CamelCase, such as CronJob")
    return ProjectResource(group, version, kind, plural or plural_of(kind), namespaced=namespaced)
