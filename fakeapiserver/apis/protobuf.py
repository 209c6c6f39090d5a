"""The recorded protobuf messages of a Kubernetes version, and which of them a kind is.

Upstream: the generated.proto files of k8s.io/api, apimachinery, apiextensions-apiserver and kube-aggregator.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from fakeapiserver.apimachinery.gvk import GroupVersion
from fakeapiserver.apimachinery.serializer.protobuf import Decoder, Encoder, Field
from fakeapiserver.apis import scheme
from fakeapiserver.apis.recorded import known_versions, read_table

# Status, DeleteOptions, Table's neighbours and discovery belong to every group version.
_META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1."


Recorded = Mapping[str, list[str]]


class Messages(Mapping[str, Mapping[int, Field]]):
    """Message -> field number -> field; numbers are converted when a message is first used."""

    def __init__(self, recorded: Mapping[str, Recorded]) -> None:
        self._recorded = recorded
        self._converted: dict[str, Mapping[int, Field]] = {}

    def __getitem__(self, name: str) -> Mapping[int, Field]:
        fields = self._converted.get(name)
        if fields is None:
            rows = self._recorded[name].items()
            fields = self._converted[name] = {int(number): (row[0], row[1], row[2]) for number, row in rows}
        return fields

    def __iter__(self) -> Iterator[str]:
        return iter(self._recorded)

    def __len__(self) -> int:
        return len(self._recorded)


# Servers of all versions speak what the two newest know: numbers never change, and older ones have no value for a newer field.
RECENT: Final = ""


@lru_cache(maxsize=4)
def messages(version: str = RECENT) -> Messages:
    """The table of a version, parsed when the first protobuf body comes."""
    if version:
        return Messages(read_table(version, "protobuf.json"))
    older, newest = (read_table(name, "protobuf.json") for name in known_versions()[-2:])
    return Messages({name: _merged(older.get(name), newest.get(name)) for name in {**older, **newest}})


def _merged(older: Recorded | None, newest: Recorded | None) -> Recorded:
    """A message with the fields of both. A field that the older one lacks is written if it has a value, never always."""
    if older is None or newest is None:
        return older or newest or {}
    return {
        number: newest.get(number, older.get(number, []))
        if number in older
        else [newest[number][0], newest[number][1], newest[number][2] or "optional"]
        for number in {**older, **newest}
    }


@lru_cache(maxsize=4)
def decoder(version: str = RECENT) -> Decoder:
    """The decoder of a version's messages."""
    return Decoder(messages(version))


@lru_cache(maxsize=4)
def encoder(version: str = RECENT) -> Encoder:
    """The encoder of a version's messages, made when the first protobuf answer is wanted."""
    return Encoder(messages(version))


@lru_cache(maxsize=4)
def message_finder(version: str = RECENT) -> Callable[[str, str], str | None]:
    """(apiVersion, kind) -> the message's name; None for kinds that have none."""
    known = messages(version)
    # Subresources' kinds stand beside the resources' in a group version's package.
    versions = [version] if version else known_versions()[-2:]
    packages = {gv: _package(name) for each in versions for gv, name in scheme.packages(each).items()}
    packages[GroupVersion("apidiscovery.k8s.io", "v2")] = "k8s.io.api.apidiscovery.v2."

    @lru_cache(maxsize=1024)
    def find(api_version: str, kind: str) -> str | None:
        package = packages.get(GroupVersion.parse(api_version))
        names = (f"{package}{kind}", _META + kind) if package else (_META + kind,)
        return next((name for name in names if name in known), None)

    return find


def _package(package: str) -> str:
    """io.k8s.api.core.v1 -> k8s.io.api.core.v1."""
    return "k8s.io." + package.removeprefix("io.k8s.").replace("-", "_") + "."
