"""`@pytest.mark.explore`: the custom resource of a test gets other specs."""

import pytest

pytest_plugins = ["pytester"]
# The operator writes the title of each site into a ConfigMap. With BUG it does so only once.
SUITE = """
import pytest
from fakeapiserver.controller_runtime import Manager, Request, Result, controller_managed_by, gvk

TITLE = {"type": "object", "properties": {"title": {"type": "string"}, "comment": {"type": "string"}}}
SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"spec": TITLE}}}
SITES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "sites.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "sites", "singular": "site", "kind": "Site", "listKind": "SiteList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": SCHEMA}],
    },
}
SITE = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": "shop"}, "spec": {"title": "Shop"}}
PAGE = {"apiVersion": "v1", "kind": "ConfigMap"}


pytestmark = pytest.mark.fake_cluster(crds=[SITES])


class Sites:
    def __init__(self, manager: Manager, bug: bool) -> None:
        self.client, self.bug = manager.client, bug

    async def reconcile(self, request: Request) -> Result:
        site = await self.client.find(gvk("example.com/v1", "Site"), request.name, request.namespace)
        page = await self.client.find(gvk("v1", "ConfigMap"), request.name, request.namespace)
        if site is None:
            return Result()
        if page is None or not self.bug:
            meta = site["metadata"]
            owner = {"apiVersion": "example.com/v1", "kind": "Site", "name": request.name, "uid": meta["uid"]}
            metadata = {"name": request.name, "namespace": request.namespace, "ownerReferences": [owner]}
            page = {**PAGE, "metadata": metadata, "data": {"title": site["spec"].get("title", "")}}
            await self.client.apply(page, force=True)
        return Result()


def right(manager: Manager) -> None:
    controller_managed_by(manager).for_(gvk("example.com/v1", "Site")).complete(Sites(manager, False))


def wrong(manager: Manager) -> None:
    controller_managed_by(manager).for_(gvk("example.com/v1", "Site")).complete(Sites(manager, True))


def has_page(cluster):
    cluster.apply({**PAGE, "metadata": {"name": "before"}})
    cluster.apply(SITE)
    cluster.wait("cm/shop", jsonpath="{.data.title}=Shop", timeout=1)
    cluster.patch("sites/shop", {"spec": {"title": "Other"}})


@pytest.mark.explore(operator=right, cases=4, depth=1)
def test_right(fake_cluster):
    has_page(fake_cluster)

@pytest.mark.explore(operator=wrong, only='spec.title = "Shop2"')
def test_wrong(fake_cluster):
    has_page(fake_cluster)

@pytest.mark.explore(operator=right)
def test_of_a_failing_test(fake_cluster):
    assert fake_cluster.list("pods") == ["one"]

@pytest.mark.explore(operator=right)
def test_without_a_custom_resource(fake_cluster):
    fake_cluster.apply({**PAGE, "metadata": {"name": "shop"}})

@pytest.mark.explore(operator=right, cases=0)
def test_without_a_case(fake_cluster): pass

@pytest.mark.explore(operator=right, kinds="crash")
def test_unknown_argument(fake_cluster): pass
"""


def test_markers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess("-rP", "-p", "no:xdist", "-p", "no:cacheprovider", "--sweep-page=pages")
    result.assert_outcomes(passed=1, failed=5)
    lines = (
        "*test_wrong*",
        '1. the ConfigMap default/shop has data.title "Shop" instead of "Shop2", when changed to spec.title = "Shop2", unlike*',
        "   again: pytest.mark.explore(only='spec.title = \"Shop2\"')",
        "1 finding in 1 case, *",
        "*AssertionError: assert [[]] == *",
        "explore: the scenario's first steps must apply the custom resource whose specs are to be tried",
        "the marker explore takes a positive number of cases, not 0",
        "the marker explore takes operator, cases, *, not 'kinds'",
        "fields without any effect: spec.comment",
        "0 findings in 4 cases, *",
    )
    result.stdout.fnmatch_lines(lines)
    assert len([*(pytester.path / "pages").iterdir()]) == 2
