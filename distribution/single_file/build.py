"""Builds the `fakeapiserver` command as one file for machines without Python: `python distribution/single_file/build.py [FOLDER]`.

Needs PyInstaller, and the package installed from a wheel. The file is written to FOLDER (`dist` by default) and
runs on the platform that it was built on.
"""

import sys
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


def main(folder: str = "dist") -> None:
    try:
        from PyInstaller.__main__ import run
    except ModuleNotFoundError:
        sys.exit("PyInstaller is not installed: pip install pyinstaller")
    with tempfile.TemporaryDirectory() as work:
        run(
            [
                "--onefile",
                "--name=fakeapiserver",
                f"--additional-hooks-dir={HERE}",
                "--hidden-import=fakeapiserver",
                "--collect-data=tzdata",
                f"--distpath={folder}",
                f"--workpath={work}",
                f"--specpath={work}",
                "--log-level=WARN",
                str(HERE / "entry.py"),
            ]
        )
    print(Path(folder) / "fakeapiserver")


if __name__ == "__main__":
    main(*sys.argv[1:])
