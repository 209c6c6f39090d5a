"""The pictures of docs/ui.md: `python -m tests.ui.pictures` takes them again, in docs/pictures."""

import shutil
from pathlib import Path
from typing import Any, Final

from fakeapiserver import Cluster
from tests.ui.conftest import FLAGS

FOLDER: Final = Path(__file__).parents[2] / "docs" / "pictures"
LABELS: Final = {"app": "web"}
STORY: Final = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": {"pods": "2"}}},
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": LABELS, "ports": [{"port": 80}]},
    },
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "finalizers": ["shop.example.com/wait"]},
    },
)
# The hash of each view, and a text that is there when it is complete.
VIEWS: Final = {
    "timeline": ("view=timeline", "Objects of clients"),
    "why": ("view=why", "limits pods to 2"),
    "object": (
        "view=objects&kind=deployments.apps&panel=object&tab=yaml&object=deployments.apps/shop/web",
        "readyReplicas",
    ),
    "graph": ("view=graph&ns=shop", "Deployment · 2/4"),
}


def take(folder: Path, browser: Any) -> None:
    """Writes a PNG for each view of a story: a quota holds a deployment back, and no client removes the finalizer of an object."""
    with Cluster(ui=True, nodes=2) as cluster:
        for obj in STORY:
            namespace = {} if obj["kind"] == "Namespace" else {"namespace": "shop"}
            cluster.apply({**obj, "metadata": {**obj["metadata"], **namespace}})
            cluster.settle()
        cluster.delete("configmap", "settings", "shop")
        context = browser.new_context(viewport={"width": 1280, "height": 720})
        page = context.new_page()
        page.goto(cluster.page.link())
        page.locator(".nav a").first.wait_for()
        for name, (view, text) in VIEWS.items():
            page.evaluate("hash => { location.hash = hash; }", view)
            page.get_by_text(text).first.wait_for()
            page.screenshot(path=folder / f"{name}.png")
        context.close()


def main() -> None:
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        take(FOLDER, browser)
        browser.close()


if __name__ == "__main__":
    main()
