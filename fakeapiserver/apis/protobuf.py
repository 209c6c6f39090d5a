"""The recorded protobuf messages of a Kubernetes version, and which of them a kind is.

Upstream: the generated.proto files of k8s.io/api, apimachinery, apiextensions-apiserver and kube-aggregator.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.serializer.protobuf import Field
from fakeapiserver.apis.scheme import load, read_table

_OPTIONS = "k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions"


class Messages(Mapping[str, Mapping[int, Field]]):
    """Message -> field number -> field; numbers are converted when a message is first used."""

    def __init__(self, recorded: Mapping[str, Mapping[str, list[str]]]) -> None:
        self._recorded = recorded
        self._converted: dict[str, Mapping[int, Field]] = {}

    def __getitem__(self, name: str) -> Mapping[int, Field]:
        found = self._converted.get(name)
        if found is None:
            rows = self._recorded[name].items()
            found = self._converted[name] = {int(number): (row[0], row[1], row[2]) for number, row in rows}
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._recorded)

    def __len__(self) -> int:
        return len(self._recorded)


@lru_cache(maxsize=4)
def messages(version: str = "v1.36") -> Messages:
    """The table of a version, parsed when the first protobuf body comes."""
    return Messages(read_table(version, "protobuf.json"))


def message_finder(version: str = "v1.36") -> Callable[[str, str], str | None]:
    """(apiVersion, kind) -> the message's name; None for kinds that have none."""
    kinds, known = load(version).kinds, messages(version)

    def find(api_version: str, kind: str) -> str | None:
        if kind == "DeleteOptions":
            return _OPTIONS
        group_version = GroupVersion.parse(api_version)
        row = kinds.get(GroupVersionKind(*group_version, kind))
        if row is None:
            return None
        # io.k8s.api.core.v1.Pod -> k8s.io.api.core.v1.Pod
        name = "k8s.io." + row.definition.removeprefix("io.k8s.").replace("-", "_")
        return name if name in known else None

    return find
