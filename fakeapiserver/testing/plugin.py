"""pytest fixtures: a Kubernetes API server per test (entry point `pytest11`).

def test_creates_a_namespace(fake_cluster): ...            # a fresh cluster; KUBECONFIG is set

@pytest.mark.fake_cluster(authorization_mode=["AlwaysAllow"])
def test_without_rbac(fake_kubeconfig): ...                # the kubeconfig's path

If a test of the run uses one of the fixtures, no test of the run reaches a cluster outside of them: see `fake_cluster_guard`.
Only pytest is imported here: a suite without these fixtures pays for nothing else.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from fakeapiserver.cluster import Cluster
    from fakeapiserver.testing.guard import Guard

FIXTURES: Final = frozenset(("fake_cluster", "fake_kubeconfig"))
_GUARD_CHOICES: Final = ("always", "auto", "off")
_GUARD: Final["pytest.StashKey[Guard]"] = pytest.StashKey()
# The fixtures of more than one test that only tests with the marker real_cluster use.
_REAL_FIXTURES: Final = pytest.StashKey[frozenset[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "fake_cluster_guard",
        "keep clients away from clusters outside of fake_cluster: always, auto (if a collected test uses one of its fixtures), off",
        default="auto",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """With `always`, what conftest files import is guarded, too."""
    if _guard_choice(early_config) == "always":
        _begin_guard(early_config)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "fake_cluster(**options): options of fakeapiserver.Cluster for this test's `fake_cluster` fixture"
    )
    config.addinivalue_line(
        "markers",
        "real_cluster: this test keeps the environment of the run, and so reaches the cluster that this names",
    )
    if _guard_choice(config) == "always":
        _begin_guard(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Begins the guard before any fixture is set up. Tests that `-k` or `-m` deselects count, too."""
    if _guard_choice(config) == "auto" and any(FIXTURES.intersection(_fixture_names(item)) for item in items):
        _begin_guard(config)
    guarded = {name for item in items if not _is_real(item) for name in _fixture_names(item)}
    real = {name for item in items if _is_real(item) for name in _fixture_names(item)}
    config.stash[_REAL_FIXTURES] = frozenset(real - guarded)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """A fixture sees the run's own environment if only tests with the marker `real_cluster` use it."""
    guard = request.config.stash.get(_GUARD, None)
    if guard is None or not _is_real_fixture(fixturedef, request):
        return (yield)
    from contextlib import ExitStack

    lifted = ExitStack()
    fixturedef.addfinalizer(lifted.close)  # runs last
    with guard.lifted():
        result = yield
    fixturedef.addfinalizer(lambda: lifted.enter_context(guard.lifted()))  # runs first
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    guard = item.config.stash.get(_GUARD, None)
    if guard is None or not _is_real(item):
        return (yield)
    with guard.lifted():
        return (yield)


def pytest_unconfigure(config: pytest.Config) -> None:
    if (guard := config.stash.get(_GUARD, None)) is not None:
        guard.end()


def _guard_choice(config: pytest.Config) -> str:
    choice = str(config.getini("fake_cluster_guard"))
    if choice not in _GUARD_CHOICES:
        raise pytest.UsageError(f'fake_cluster_guard: "{choice}" is not one of {", ".join(_GUARD_CHOICES)}')
    return choice


def _begin_guard(config: pytest.Config) -> None:
    from fakeapiserver.testing.guard import Guard

    config.stash.setdefault(_GUARD, Guard()).begin()


def _fixture_names(item: pytest.Item) -> Sequence[str]:
    names: Sequence[str] = getattr(item, "fixturenames", ())
    return names


def _is_real(item: pytest.Item) -> bool:
    return item.get_closest_marker("real_cluster") is not None


def _is_real_fixture(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> bool:
    if fixturedef.scope == "function":
        return request.node.get_closest_marker("real_cluster") is not None
    return fixturedef.argname in request.config.stash[_REAL_FIXTURES]


# ------------------------------------------------------------------ fixtures


@pytest.fixture
def fake_cluster(request: pytest.FixtureRequest) -> Iterator["Cluster"]:
    """A fresh cluster for this test, running in a thread; every client that isn't given another one uses it.

    The markers `fake_cluster` give its options; a test's own marker overrides its class's and its module's. Works under
    pytest-xdist: every cluster has ports and files of its own."""
    from fakeapiserver.cluster import Cluster
    from fakeapiserver.testing.environment import pointed_at

    if _guard_choice(request.config) == "auto":
        _begin_guard(request.config)  # for fixtures that are requested by getfixturevalue
    options = {}
    for marker in reversed([*request.node.iter_markers("fake_cluster")]):
        options.update(marker.kwargs)
    with Cluster(**options) as cluster, pointed_at(cluster.kubeconfig):
        yield cluster


@pytest.fixture
def fake_kubeconfig(fake_cluster: "Cluster") -> str:
    """The path of a kubeconfig for this test's cluster."""
    return fake_cluster.kubeconfig
