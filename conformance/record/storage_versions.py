"""Records what a Kubernetes version stores its resources as: the StorageVersions that a server publishes.

    python -m conformance.record.storage_versions --server URL --token T --out fakeapiserver/apis/versions/v1.36

The server should be fresh and have `--runtime-config=api/all=true --feature-gates=AllAlpha=true,AllBeta=true`.
storage_versions.json has a StorageVersion a line: its name, the version that objects are encoded in, and those that can be decoded.
"""

import argparse
import sys
from pathlib import Path

from conformance.record.types import connect, lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    get = connect(arguments.server, arguments.token)
    found = {}
    for item in get("/apis/internal.apiserver.k8s.io/v1alpha1/storageversions")["items"]:
        [row] = item["status"]["storageVersions"]
        found[item["metadata"]["name"]] = {"encoding": row["encodingVersion"], "decodable": row["decodableVersions"]}
    (arguments.out / "storage_versions.json").write_text(lines(found, 1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
