"""The picture of a namespace: what many use doesn't hold it together."""

from typing import Any

import pytest

from tests.ui import recordings


def using(count: int) -> dict[str, Any]:
    """A recording of so many pods that mount one ConfigMap."""
    recorder = recordings.Recorder()
    recorder.write("kubectl", "create", "namespaces", "", "shop", {})
    recorder.write("kubectl", "create", "configmaps", "shop", "settings", {"data": {}})
    for number in range(count):
        spec = {"containers": [], "volumes": [{"name": "v", "configMap": {"name": "settings"}}]}
        recorder.write("kubectl", "create", "pods", "shop", f"web-{number}", {"spec": spec})
    return recorder.recording()


@pytest.mark.parametrize(("users", "hidden"), [(6, 0), (7, 7)])
def test_lines_to_what_many_use_are_drawn_when_it_is_pointed_at(open_page, expect, users, hidden):
    page = open_page(using(users), "#view=graph&ns=shop")
    node = page.locator(".graph-node", has_text="settings")
    expect(page.locator(".graph-edge[data-from]")).to_have_count(users)
    expect(page.locator(".graph-edge.hidden")).to_have_count(hidden)
    expect(node).to_have_accessible_name(f"ConfigMap · 1/1{', used by 7' if hidden else ''} settings")
    first = page.locator(".graph-edge[data-from]").first
    expect(first).to_have_css("display", "none" if hidden else "inline")
    node.hover()
    expect(first).to_have_css("display", "inline")
