"""controller-runtime's own test suites against this server: `python -m conformance.suites.controller_runtime [PACKAGE ...]`.

The module comes by the ordinary go command and is copied out of its cache, where nothing can be written. Its suites start
envtest, which finds this server's stand-ins through KUBEBUILDER_ASSETS; `--assets` names another folder, so that of the real
programs. A package is `./pkg/client`, `./pkg/client/...` or `client`; without any it is all of them. Needs Go and some minutes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from conformance.suites import go_suites
from conformance.suites.go_suites import Module

MODULE: Final = Module("sigs.k8s.io/controller-runtime", "v0.25.2")


def package_path(name: str) -> str:
    return name if name.startswith("./") else f"./pkg/{name.removeprefix('pkg/')}"


def write_assets(folder: Path) -> Path:
    """This server's stand-ins."""
    command = [sys.executable, "-m", "fakeapiserver", "envtest-assets", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def main() -> int:
    parser = go_suites.arguments(__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    arguments = parser.parse_args()
    if not go_suites.has_go("controller_runtime"):
        return 1
    with tempfile.TemporaryDirectory() as folder:
        assets = arguments.assets or write_assets(Path(folder))
        words = [package_path(name) for name in arguments.packages or ["pkg/..."]]
        sources = MODULE.fetch(arguments.sources)
        suites = MODULE.test(words, sources, {"KUBEBUILDER_ASSETS": str(assets.absolute())})
    return go_suites.report(suites, arguments.output, arguments.minimum)


if __name__ == "__main__":
    sys.exit(main())
