"""The suites of kubebuilder's book projects against this server: `python -m conformance.suites.kubebuilder [PROJECT ...]`.

kubebuilder comes by the ordinary go command; the book's projects (the CronJob tutorial, and the one of several versions) are made as
its own generator makes them, and their webhook and controller suites run by envtest with this server's stand-ins. `--assets` names a
folder with the real programs, which are used instead. Needs Go, make and some minutes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from conformance.suites import go_suites
from conformance.suites.controller_runtime import write_assets
from conformance.suites.go_suites import Module

MODULE: Final = Module("sigs.k8s.io/kubebuilder/v4", "v4.10.1")
# project -> the package that makes it, what it is called there
PROJECTS: Final = {"cronjob": "cronjob-tutorial", "multiversion": "multiversion-tutorial"}
_MODULE_PATH: Final = "tutorial.kubebuilder.io/project"
_MAKER: Final = """\
package main

import (
	"os"

	tutorial "sigs.k8s.io/kubebuilder/v4/hack/docs/internal/{package}"
)

func main() {{
	sample := tutorial.NewSample(os.Args[1], os.Args[2])
	sample.Prepare()
	sample.GenerateSampleProject()
	sample.UpdateTutorial()
}}
"""


def make(name: str, sources: Path) -> Path:
    """The project's folder; made once. CalledProcessError."""
    package = PROJECTS[name]
    place = Path("docs/book/src") / package / "testdata" / "project"
    project = sources / place
    if not (project / ".made").exists():
        shutil.rmtree(project, ignore_errors=True)
        project.mkdir(parents=True)
        maker = sources / "hack" / "docs" / f"make_{name}"
        maker.mkdir(exist_ok=True)
        (maker / "main.go").write_text(_MAKER.format(package=package))
        binary = sources / "bin" / "kubebuilder"
        subprocess.run(["go", "build", "-o", str(binary), "."], check=True, cwd=sources)
        words = ["go", "run", f"./hack/docs/make_{name}", str(binary), f"{place}/"]
        # the projects are modules of their own: what holds for this one must not hold for them
        environment = {key: value for key, value in os.environ.items() if key != "GOFLAGS"}
        subprocess.run(words, check=True, cwd=sources, env=environment, stdout=sys.stderr)
        (project / ".made").touch()
    return project


def main() -> int:
    parser = go_suites.arguments(__doc__)
    parser.add_argument("projects", nargs="*", metavar="PROJECT", help=", ".join(PROJECTS))
    arguments = parser.parse_args()
    if unknown := set(arguments.projects) - set(PROJECTS):
        parser.error(f"there is no project {', '.join(sorted(unknown))}: use {', '.join(PROJECTS)}")
    if not go_suites.has_go("kubebuilder"):
        return 1
    sources = MODULE.fetch(arguments.sources)
    suites: dict[str, go_suites.Suite] = {}
    with tempfile.TemporaryDirectory() as folder:
        assets = arguments.assets or write_assets(Path(folder))
        for name in arguments.projects or PROJECTS:
            tests = Module(_MODULE_PATH, "").test(
                ["./internal/..."], make(name, sources), {"KUBEBUILDER_ASSETS": str(assets.absolute())}
            )
            suites |= {f"{name}/{package}": suite for package, suite in tests.items()}
    return go_suites.report(suites, arguments.output, arguments.minimum)


if __name__ == "__main__":
    sys.exit(main())
