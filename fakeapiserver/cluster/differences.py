"""`diff`: the differences of two clusters, snapshots or saved files."""

import os

from fakeapiserver.cluster.async_cluster import AsyncCluster
from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.state import diff as diffs
from fakeapiserver.state import file
from fakeapiserver.storage.mvcc import Snapshot

State = Snapshot | str | os.PathLike[str] | Cluster | AsyncCluster


def diff(old: State, new: State, *, noise: bool = False) -> "diffs.Diff":
    """The differences between two states, each a snapshot, the path of a saved file, or a running cluster: true if there are any. Its text
    is YAML; `added`, `removed` and `changed` are lists of objects.

    - `noise`: also compare managedFields, resourceVersion, uid, generation and times.

    Raises OSError or ValueError for a file that can't be read."""
    return diffs.diff(_snapshot(old), _snapshot(new), noise=noise)


def _snapshot(state: State) -> Snapshot:
    match state:
        case Snapshot():
            return state
        case Cluster():
            return state.snapshot()
        case AsyncCluster():
            return state._api.snapshot()
    return file.read(state).storage.snapshot()
