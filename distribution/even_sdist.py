"""Makes an sdist the same in each build of a commit: `SOURCE_DATE_EPOCH=... python distribution/even_sdist.py dist/*.tar.gz`.

setuptools writes the time of the build, and the builder's name, into the archive. Each entry gets SOURCE_DATE_EPOCH (seconds since
1970; 0 by default) and no owner instead, in the order of the names; contents stay. https://reproducible-builds.org/specs/source-date-epoch
"""

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path


def even(path: Path, seconds: int) -> None:
    """Rewrites the archive in place."""
    written = io.BytesIO()
    with (
        tarfile.open(path, "r:gz") as sdist,
        gzip.GzipFile(filename="", fileobj=written, mode="wb", mtime=seconds) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in sorted(sdist.getmembers(), key=lambda entry: entry.name):
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = seconds, 0, 0, "", ""
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644  # of the umask nothing is left
            entry.pax_headers = {}
            archive.addfile(entry, sdist.extractfile(entry) if entry.isreg() else None)
    path.write_bytes(written.getvalue())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        even(Path(name), int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
