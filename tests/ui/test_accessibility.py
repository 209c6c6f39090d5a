"""axe-core's rules for each view, in light and dark. axe-core comes from npm when the tests run."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ui import recordings

SELECTED = "panel=object&object=deployments.apps/shop-0/web-0"
PAGES = (
    "view=timeline",
    "view=timeline&panel=request&request=7",
    f"view=objects&{SELECTED}",
    "view=graph",
    "view=why",
    "view=share",
    "view=levers",
    "range=2-12&panel=changes",
)
# All rules that axe runs by itself, and one that it calls experimental: names contain the text that is to be seen.
RUN = """async () => {
  const rules = { "label-content-name-mismatch": { enabled: true } };
  return (await axe.run(document, { rules })).violations;
}"""


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("axe-core comes from npm, which is missing: apt-get install npm")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--no-save", "--no-audit", "--no-fund", "--prefix", str(folder), "axe-core@4"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    if finished.returncode:
        pytest.skip(f"npm can't install axe-core here: {finished.stderr[-300:]}")
    return Path(folder, "node_modules", "axe-core", "axe.min.js").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", PAGES)
def test_axe_finds_nothing(open_page, small, axe, address, scheme):
    page = open_page(small, f"#{address}", color_scheme=scheme, bypass_csp=True)
    page.locator("#view > *").first.wait_for()
    page.wait_for_load_state("networkidle")
    page.evaluate(axe)
    violations = page.evaluate(RUN)
    found = [(v["id"], node["html"][:150], node["failureSummary"][-200:]) for v in violations for node in v["nodes"]]
    assert found == []


@pytest.mark.parametrize("dialog", ["?", "Control+k"])
def test_axe_finds_nothing_in_dialogs(open_page, small, axe, dialog):
    page = open_page(small, bypass_csp=True)
    page.locator(".timeline button.label").first.wait_for()
    page.keyboard.press(dialog)
    page.locator("dialog[open]").wait_for()
    page.evaluate(axe)
    assert [(v["id"], v["nodes"][0]["html"][:150]) for v in page.evaluate(RUN)] == []


def test_shortened_names_of_the_graph_are_whole_for_screen_readers(open_page, axe, expect):
    recorder = recordings.Recorder()
    name = "settings-of-a-shop-whose-name-is-longer-than-its-node"
    recorder.write("kubectl", "create", "namespaces", "", "shop", {})
    recorder.write("kubectl", "create", "configmaps", "shop", name, {"data": {}})
    page = open_page(recorder.recording(), "#view=graph&ns=shop", bypass_csp=True)
    node = page.locator(".graph-node")
    expect(node).to_have_accessible_name(re.compile(f"^ConfigMap .*settings-of-a-…-its-node, {name}$"))
    page.evaluate(axe)
    assert [(v["id"], v["nodes"][0]["html"]) for v in page.evaluate(RUN)] == []
