"""The page of a failed test: an HTML file for each cluster that it used (--fake-cluster-html)."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import structs

from fakeapiserver.cluster import Cluster


def record(cluster: Cluster) -> None:
    """Lets a cluster that doesn't run yet record what happens in it."""
    cluster._core._config = structs.replace(cluster._core._config, records=True)


def write(folder: Path, test: str, clusters: Sequence[Cluster], failure: str) -> Iterator[Path]:
    """Writes the pages of a test's clusters that record, and yields their paths. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, cluster in enumerate(clusters, 1):
        if cluster._server.config.is_recorded:
            path = folder / file_name(test if number == 1 else f"{test} {number}")
            cluster.page.save(path, title=test, failure=failure)
            yield path


def file_name(test: str) -> str:
    """The name of a test's page: its own name, in which other characters than letters and digits are dashes, and a digest of it."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", test).strip("-")[-100:]
    return f"{plain}-{hashlib.sha256(test.encode()).hexdigest()[:6]}.html"
