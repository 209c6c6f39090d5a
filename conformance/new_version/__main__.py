"""Adds a Kubernetes version: records its facts, compares this server with it, and lists what is left to do.

    python -m conformance.new_version 1.37 --assets DIR [--modules DIR] [--only facts|record|compare] [--compare NAME …]
        [--seed N] [--output text|json]

DIR has the release's kube-apiserver, kube-controller-manager, kubectl and etcd. Its sources are read from Go's module cache, where building
the programs has put them. Writes the folder fakeapiserver/apis/versions/v1.37 and adds to the tables that all versions share; then runs
the comparisons beside the real server and prints each kind of difference that isn't explained yet (`explanations.json`): how often it was
found, the first request that shows it, and the file or folder that decides it. Alphas and release candidates are recorded the same way;
their release's name marks them as previews. Progress goes to stderr. `--compare list` prints the names of the comparisons.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from conformance.new_version.comparisons import compare, names
from conformance.new_version.facts import RecordingError, Release, module_cache, record_facts, release_in
from conformance.new_version.findings import listed, unexplained


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="the minor version, e.g. 1.37")
    parser.add_argument("--assets", type=Path, required=True, help="folder with the release's programs")
    parser.add_argument("--modules", type=Path, help="Go's module cache (default: go env GOMODCACHE)")
    parser.add_argument("--only", choices=("record", "compare"), help="leave out the other part")
    parser.add_argument("--compare", action="append", default=[], metavar="NAME", help="only these comparisons")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    if "list" in arguments.compare:
        print("\n".join(names()))
        return 0
    if unknown := [name for name in arguments.compare if name not in names()]:
        parser.error(f"unknown comparison: {unknown[0]!r} (--compare list prints the names)")
    begun = time.monotonic()

    def progress(what: str) -> None:
        print(f"{time.monotonic() - begun:5.0f} s  {what}", file=sys.stderr, flush=True)

    try:
        release = release_in(arguments.assets.absolute(), arguments.modules or module_cache())
        _check(release, arguments.version)
        if arguments.only != "compare":
            record_facts(release, progress)
            progress(f"{release.folder} is written{', a preview' if release.is_preview else ''}")
        if arguments.only == "record":
            return 0
        found = unexplained(compare(release, arguments.compare, arguments.seed, progress))
    except RecordingError as error:
        print(f"conformance.new_version: {error}", file=sys.stderr)
        return 1
    rows = [row.as_row() for row in found]
    facts = {"release": release.name, "preview": release.is_preview, "differences": rows}
    print(json.dumps(facts, indent=1) if arguments.output == "json" else listed(found))
    progress(f"{len(found)} kinds of difference are left to explain")
    return 0


def _check(release: Release, version: str) -> None:
    if release.minor != version.removeprefix("v"):
        raise RecordingError(f"the programs in {release.assets} are of {release.name}, not of {version}")


if __name__ == "__main__":
    sys.exit(main())
