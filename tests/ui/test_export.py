"""The page as one file, made of a real recording, opens without a server."""

import re
from pathlib import Path
from typing import Any

import pytest

from fakeapiserver import Cluster
from fakeapiserver.ui import export

CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "here"},
    "data": {"k": "</script><img src=x>"},
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    with Cluster(ui=True, controllers=()) as cluster:
        cluster.apply(CONFIG_MAP)
        cluster.page.save(path, title="tests/a.py::test_b[<x>]", failure="E   assert '</script>' == '<!--'")
    return path


def test_it_opens_without_a_server(saved: Path, browser: Any) -> None:
    page, errors = browser.new_page(), list[str]()
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "request",
        lambda request: errors.append(request.url) if not request.url.startswith(("file:", "data:")) else None,
    )
    page.goto(f"{saved.as_uri()}#view=objects&panel=object&tab=yaml&object=configmaps/default/here")
    for text in ("</script><img src=x>", "tests/a.py::test_b[<x>]"):
        page.get_by_text(text).first.wait_for()
    assert errors == []
    page.close()


def test_no_text_of_a_recording_ends_its_element() -> None:
    page = export.page(b'{"failure": "</script><script>alert(1)</script>"}').decode()
    assert page.count("<script") == page.count("</script>") == 2
    assert "\\u003c/script>\\u003cscript>alert(1)" in page


def test_only_its_own_script_may_run() -> None:
    page = export.page(b"{}").decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert page.index("Content-Security-Policy") < page.index("<style>") < page.index("<script")
