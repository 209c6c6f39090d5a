"""docs/cluster.md: each section has an example, the examples are typed, and it names every member and option of a Cluster."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from fakeapiserver import Cluster, ClusterOptions

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/cluster.md").read_text()
EXAMPLES = re.findall(r"^## (.*?)$|^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
HEADINGS = [heading for heading, _ in EXAMPLES if heading]
RUN = {heading: code for (heading, _), (_, code) in pairwise(EXAMPLES) if heading and code}
# start, stop and write_kubeconfig are for callers that can't use `with`, or want another copy of the file.
UNNAMED = {"from_config", "start", "stop", "write_kubeconfig", "reset"}


def test_every_section_has_an_example() -> None:
    assert list(RUN) == HEADINGS


def test_the_page_names_every_member_and_option() -> None:
    members = {name for name in dir(Cluster) if not name.startswith("_")} - UNNAMED
    assert [name for name in sorted(members | ClusterOptions.__annotations__.keys()) if name not in PAGE] == []


@pytest.mark.slow
@pytest.mark.timeout(300)  # without mypy's cache it checks the package first
def test_the_examples_are_typed(tmp_path: Path) -> None:
    """`mypy --strict` of a user's file, with the types of the package (py.typed)."""
    pytest.importorskip("mypy", reason="mypy is not installed: pip install -e '.[dev]'")
    scripts = []
    for number, (heading, code) in enumerate(RUN.items()):
        if "kubernetes.client" not in code:  # which has no types
            scripts.append(tmp_path / f"example_{number}.py")
            scripts[-1].write_text(f'"""{heading}"""\n{code}')
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from fakeapiserver import AsyncCluster, Cluster\n"
        "Cluster(node=3)\n"
        "Cluster().wait('pod', 'web', timeout='soon')\n"
        "async def main(cluster: AsyncCluster) -> int:\n"
        "    return await cluster.get('pod', 'web')\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={ROOT / '.mypy_cache'}", "--no-error-summary"]
    ran = subprocess.run([*command, *map(str, scripts), str(wrong)], capture_output=True, text=True, check=False)
    found = [line.split(" error: ")[0].rpartition("/")[2] for line in ran.stdout.splitlines() if " error: " in line]
    assert found == ["wrong.py:2:", "wrong.py:3:", "wrong.py:5:"], ran.stdout
