"""Packs the single file as archives that setup-envtest takes, for machines without Python.

`python distribution/single_file/envtest_archive.py pack FILE FOLDER` writes `envtest-v1.37.2-linux-amd64.tar.gz`, named for the newest
Kubernetes version and this platform; FILE is what build.py built. `... index FOLDER URL` then writes `envtest-releases.yaml` about all
archives in FOLDER, which are to be found below URL: `setup-envtest --index` reads it. Upstream: controller-tools' envtest-releases.yaml.
"""

import gzip
import hashlib
import io
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

from fakeapiserver.apis.recorded import NEWEST, release_of
from fakeapiserver.cli.envtest_assets import platform, scripts

INNER: Final = "controller-tools/envtest"
# The script's folder is left out of the search: it would find itself.
KUBECTL: Final = """#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
IFS=:
for folder in $PATH; do
  if [ "$folder" != "$here" ] && [ -x "$folder/kubectl" ]; then exec "$folder/kubectl" "$@"; fi
done
echo "there is no kubectl on the PATH: install one; what needs none works all the same" >&2
exit 127
"""


def pack(single: Path, folder: Path) -> Path:
    """Writes the archive and returns its path. The same file gives the same bytes."""
    release, (system, processor) = release_of(NEWEST), platform()
    programs = scripts('"$(dirname "$0")/fakeapiserver"', NEWEST, root=None)
    del programs["setup-envtest"]
    contents = {name: text.encode() for name, text in {**programs, "kubectl": KUBECTL}.items()}
    contents["fakeapiserver"] = single.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"envtest-{release}-{system}-{processor}.tar.gz"
    with (
        path.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, content in sorted(contents.items()):
            entry = tarfile.TarInfo(f"{INNER}/{name}")
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return path


def index(folder: Path, url: str) -> Path:
    """Writes the index of the folder's archives and returns its path."""
    releases: dict[str, dict[str, dict[str, str]]] = {}
    for archive in sorted(folder.glob("envtest-*.tar.gz")):
        release = archive.name.split("-")[1]
        digest = hashlib.sha512(archive.read_bytes()).hexdigest()
        releases.setdefault(release, {})[archive.name] = {"hash": digest, "selfLink": f"{url}/{archive.name}"}
    path = folder / "envtest-releases.yaml"
    path.write_text(yaml.safe_dump({"releases": releases}), encoding="utf-8")
    return path


def main(words: Sequence[str]) -> None:
    match words:
        case ["pack", single, folder]:
            print(pack(Path(single), Path(folder)))
        case ["index", folder, url]:
            print(index(Path(folder), url.rstrip("/")))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
