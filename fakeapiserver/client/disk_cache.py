"""A server's discovery on disk, in the files that kubectl uses, too.

    ~/.kube/cache/discovery/127.0.0.1_6443/servergroups.json
    ~/.kube/cache/discovery/127.0.0.1_6443/apps/v1/serverresources.json

Upstream: k8s.io/client-go/discovery/cached/disk, k8s.io/cli-runtime/pkg/genericclioptions/config_flags.go.
"""

import os
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.discovery import APIGroup, Documents, groups_of

_SECONDS: Final = 6 * 60 * 60.0
_ODD: Final = re.compile(r"[^(\w/.)]", re.ASCII)


class DocumentSource(Protocol):
    """The source of documents that the disk does not have: a DiscoveryClient."""

    async def documents(self) -> Documents:
        """StatusError, TransportError."""

    def invalidate(self) -> None:
        """Forgets what is cached."""


class DiskCache:
    """Caches the discovery of the server at `host` (a URL) below `folder` for `seconds`; by default kubectl's folder and six hours.

    A file that is missing, broken or too old is read from the server again. A file that can't be written is ignored. Documents with
    unavailable group versions are not cached.
    """

    def __init__(
        self, discovery: DocumentSource, host: str, folder: Path | None = None, seconds: float = _SECONDS
    ) -> None:
        cache = os.environ.get("KUBECACHEDIR") or os.path.expanduser("~/.kube/cache")
        place = _ODD.sub("_", host.replace("https://", "", 1).replace("http://", "", 1))
        self._folder = (folder or Path(cache, "discovery")) / place
        self._discovery = discovery
        self._seconds = seconds
        self._own: set[Path] | None = None  # files that count still after an invalidation; None: all do

    async def groups(self) -> Sequence[APIGroup]:
        """StatusError, TransportError."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            return groups_of(self._read())
        documents = await self._discovery.documents()
        if not documents.stale:
            with suppress(OSError):
                self._write(documents)
        return groups_of(documents)

    def invalidate(self) -> None:
        """No file counts that isn't written from now on."""
        self._own = set()
        self._discovery.invalidate()

    def _read(self) -> Documents:
        """ValueError, OSError and whatever else a broken file makes."""
        groups = self._load(self._folder / "servergroups.json")["groups"]
        names = [version["groupVersion"] for group in groups for version in group["versions"]]
        return Documents(groups, {name: self._load(self._table(name)) for name in names})

    def _load(self, path: Path) -> Object:
        if self._own is not None and path not in self._own:
            raise ValueError("cache invalidated")
        if time.time() > path.stat().st_mtime + self._seconds:
            raise ValueError("cache expired")
        document: Object = msgspec.json.decode(path.read_bytes(), type=dict)
        return document

    def _write(self, documents: Documents) -> None:
        groups = {"kind": "APIGroupList", "apiVersion": "v1", "groups": documents.groups}
        for name, table in documents.resources.items():
            self._save(self._table(name), table)
        self._save(self._folder / "servergroups.json", groups)

    def _save(self, path: Path, document: Object) -> None:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
            file.write(msgspec.json.encode(document) + b"\n")
        os.chmod(file.name, 0o660)
        os.replace(file.name, path)
        if self._own is not None:
            self._own.add(path)

    def _table(self, group_version: str) -> Path:
        return self._folder / group_version / "serverresources.json"
