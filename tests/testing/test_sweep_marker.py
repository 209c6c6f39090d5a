"""`@pytest.mark.sweep`: a test runs again for each surprise that its operator may meet."""

import pytest

from fakeapiserver.testing import pages

pytest_plugins = ["pytester"]
# The operator gives each ConfigMap of a site a Secret and then a page. With BUG it takes the Secret for a sign that all is done.
SUITE = """
import pytest
from fakeapiserver.client.errors import StatusError
from fakeapiserver.controller_runtime import Manager, Request, Result, controller_managed_by, gvk

SITE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop", "labels": {"kind": "site"}}}
PAGE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop-page"}, "data": {"title": "shop"}}


class Sites:
    def __init__(self, manager: Manager, bug: bool) -> None:
        self.client, self.bug = manager.client, bug

    async def reconcile(self, request: Request) -> Result:
        try:
            site = await self.client.get(gvk("v1", "ConfigMap"), request.name, request.namespace)
        except StatusError:
            return Result()
        if site.get("metadata", {}).get("labels", {}).get("kind") != "site":
            return Result()
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": request.name, "uid": site["metadata"]["uid"]}
        login = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop-login", "namespace": request.namespace,
                 "ownerReferences": [owner]}}
        secrets = await self.client.list(gvk("v1", "Secret"), namespace=request.namespace)
        if not [each for each in secrets if each["metadata"]["name"] == "shop-login"]:
            await self.client.create(login)
        elif self.bug:
            return Result()
        page = {**PAGE, "metadata": {"name": "shop-page", "namespace": request.namespace, "ownerReferences": [owner]}}
        await self.client.apply(page, force=True)
        return Result()


def right(manager: Manager) -> None:
    controller_managed_by(manager).for_(gvk("v1", "ConfigMap")).complete(Sites(manager, False))


def wrong(manager: Manager) -> None:
    controller_managed_by(manager).for_(gvk("v1", "ConfigMap")).complete(Sites(manager, True))


def has_page(cluster):
    cluster.apply(SITE)
    cluster.wait("cm/shop-page", jsonpath="{.data.title}=shop", timeout=1)
    cluster.delete("cm/shop")
    cluster.wait("cm/shop-page", "delete", timeout=5)


@pytest.mark.sweep(operator=right, kinds=["crash", "stale", "late"])
def test_right(fake_cluster):
    has_page(fake_cluster)

@pytest.mark.sweep(operator=wrong, kinds=["crash"])
def test_wrong(fake_cluster):
    has_page(fake_cluster)

@pytest.mark.sweep(operator=right, kinds="crash", invariants={"no login": lambda moment: not moment.list("secrets", "default")})
def test_invariant(fake_cluster):
    has_page(fake_cluster)

@pytest.mark.sweep(operator=right)
def test_of_a_failing_test(fake_cluster):
    assert fake_cluster.list("pods") == ["one"]

@pytest.mark.sweep
def test_without_an_operator(fake_cluster): pass

@pytest.mark.sweep(operator=right, kinds="crush")
def test_unknown_kind(fake_cluster): pass

@pytest.mark.sweep(operator=right)
def test_without_a_cluster(): pass
"""


def test_markers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:cacheprovider", "--sweep-page=reports/pages")
    result.assert_outcomes(passed=1, failed=6)
    lines = (
        "*test_wrong*",
        "1. after step 1, the ConfigMap default/shop-page is missing (and 1 more)",
        "   by: crash after create secrets default/shop-login",
        "   - step 1 (apply) fails: *",
        "   again: pytest.mark.sweep(only='crash after create secrets default/shop-login')",
        "1 finding in 3 cases, *",
        "sweep: an invariant doesn't hold without any perturbation: no login",
        "*AssertionError: assert [[]] == *",
        "the marker sweep needs operator=: a command, or a function that adds controllers to a Manager",
        "the marker sweep has no kind 'crush': kinds are crash, *",
        "the marker sweep is for tests that have the argument fake_cluster and are no coroutines",
    )
    result.stdout.fnmatch_lines(lines)
    pages = {path.name[:-12]: path.read_text() for path in (pytester.path / "reports/pages").iterdir()}
    assert {*pages} == {"test_markers-py-test_right", "test_markers-py-test_wrong"}
    assert "the ConfigMap default/shop-page is missing" in pages["test_markers-py-test_wrong"]


def test_each_test_has_a_page_of_its_own() -> None:
    names = {pages.file_name(name) for name in ("a.py::test[x/y]", "a.py::test[x-y]", "a.py::test[" + "x" * 500)}
    assert len(names) == 3
    assert max(map(len, names)) < 120
