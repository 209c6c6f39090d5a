"""pytest fixtures: a Kubernetes API server per test (entry point `pytest11`).

def test_creates_a_namespace(fake_cluster): ...            # a fresh cluster; KUBECONFIG is set

@pytest.mark.fake_cluster(authorization_mode=["AlwaysAllow"])
def test_without_rbac(fake_kubeconfig): ...                # the kubeconfig's path

If a test of the run uses one of the fixtures, no test of the run reaches a cluster outside of them: see `fake_cluster_guard`.
Only pytest is imported here: a suite without these fixtures pays for nothing else.
"""

import os
from ast import literal_eval
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from hashlib import blake2b
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

if TYPE_CHECKING:
    from fakeapiserver.cluster import Cluster
    from fakeapiserver.evidence.requests import RequestList
    from fakeapiserver.testing.guard import Guard
    from fakeapiserver.testing.shared import SharedCluster

FIXTURES: Final = frozenset(
    ("fake_cluster", "fake_cluster_module", "fake_cluster_session", "fake_kubeconfig", "make_fake_cluster")
)
_GUARD_CHOICES: Final = ("always", "auto", "off")
_GUARD: Final["pytest.StashKey[Guard]"] = pytest.StashKey()
# The clusters that a test uses.
_CLUSTERS: Final["pytest.StashKey[list[Cluster]]"] = pytest.StashKey()
# The pages that were written about failed tests, of a run or a worker of xdist.
_PAGE: Final = "fake_cluster_html"
# The fixtures of more than one test that only tests with the marker real_cluster use.
_REAL_FIXTURES: Final = pytest.StashKey[frozenset[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "fake_cluster_guard",
        "keep clients away from clusters outside of fake_cluster: always, auto (if a collected test uses one of its fixtures), off",
        default="auto",
    )
    parser.addini(
        "fake_cluster_options",
        "options of fakeapiserver.Cluster for every fake cluster, a line each: name = Python literal",
        type="linelist",
    )
    parser.getgroup("fakeapiserver").addoption(
        "--fake-cluster-report",
        choices=("short", "full", "off"),
        default="short",
        help="what to show of the fake clusters of a failed test: at most 60 lines (short), everything (full) or nothing (off)",
    )
    parser.getgroup("fakeapiserver").addoption(
        "--fake-cluster-html",
        metavar="DIR",
        help="record what happens in fake clusters, and write a page about each failed test to this folder, for browsers",
    )
    parser.getgroup("fakeapiserver").addoption(
        "--update-transcripts",
        action="store_true",
        help="write the files of assert_transcript instead of comparing with them",
    )
    parser.getgroup("fakeapiserver").addoption(
        "--sweep-page",
        metavar="DIR",
        help="write the report of each test with the marker sweep or explore to this folder, as a page for browsers",
    )
    parser.getgroup("fakeapiserver").addoption(
        "--fake-cluster-seed",
        type=int,
        metavar="N",
        help="repeat the uids, generated names, addresses, ports and orders of an earlier run; its failed tests show the number",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """With `always`, what conftest files import is guarded, too."""
    if _guard_choice(early_config) == "always":
        _begin_guard(early_config)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "fake_cluster(**options): options of fakeapiserver.Cluster for the test's, class's or module's fake clusters",
    )
    config.addinivalue_line(
        "markers",
        "faults(**fields): a fault that the clients of the test's fake clusters meet, as cluster.faults.add(**fields)",
    )
    config.addinivalue_line(
        "markers",
        "request_budget(writes=10): the most requests, reads, writes or watches that clients send to the test's fake clusters",
    )
    config.addinivalue_line(
        "markers",
        "sweep(operator=…): run the test again for each crash, refusal and outdated state that the operator may meet (docs/sweeps.md)",
    )
    config.addinivalue_line(
        "markers",
        "explore(operator=…): give the custom resource that the test applies the other specs that its schema allows (docs/sweeps.md)",
    )
    config.addinivalue_line(
        "markers",
        "real_cluster: this test keeps the environment of the run, and so reaches the cluster that this names",
    )
    if config.option.fake_cluster_seed is None:  # workers of xdist get the number from their controller
        config.option.fake_cluster_seed = int.from_bytes(os.urandom(4))
    elif config.option.fake_cluster_seed < 0:
        raise pytest.UsageError(f"--fake-cluster-seed must be 0 or more, not {config.option.fake_cluster_seed}")
    if _guard_choice(config) == "always":
        _begin_guard(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Begins the guard before any fixture is set up. Tests that `-k` or `-m` deselects count, too."""
    if _guard_choice(config) == "auto" and any(map(_uses_a_fixture, items)):
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
    lifted = ExitStack()
    fixturedef.addfinalizer(lifted.close)  # runs last
    with guard.lifted():
        result = yield
    fixturedef.addfinalizer(lambda: lifted.enter_context(guard.lifted()))  # runs first
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    guard = item.config.stash.get(_GUARD, None)
    check = _budgets_of(item)
    with guard.lifted() if guard is not None and _is_real(item) else nullcontext():
        result = yield
    check()
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Sweeps or explores a test with such a marker. Returns None for other tests, which pytest calls then."""
    markers = [marker for name in ("sweep", "explore") if (marker := pyfuncitem.get_closest_marker(name)) is not None]
    for marker in markers:
        _sweep(pyfuncitem, marker)
    return True if markers else None


def _sweep(item: pytest.Function, marker: pytest.Mark) -> None:
    __tracebackhide__ = True
    from fakeapiserver.testing import explorations, sweeps
    from fakeapiserver.testing.environment import pointed_at

    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    if "fake_cluster" not in arguments or iscoroutinefunction(item.obj):
        _refuse(f"the marker {marker.name} is for tests that have the argument fake_cluster and are no coroutines")

    def test(cluster: object) -> None:
        item.obj(**{**arguments, "fake_cluster": cluster})

    options: Any = {"seed": _seed(item.config, item.nodeid, 0), **_options(item.config, item)}
    pages = item.config.getoption("sweep_page")
    run = sweeps.run if marker.name == "sweep" else explorations.run
    problem = run(item.nodeid, marker, options, test, pointed_at, Path(pages) if pages else None)
    if problem:
        _refuse(problem)


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


def _uses_a_fixture(item: pytest.Item) -> bool:
    """Reports whether the test requests one of the fixtures, or has the mixin for unittest."""
    return bool(FIXTURES.intersection(_fixture_names(item))) or hasattr(
        getattr(item, "cls", None), "fake_cluster_options"
    )


def _is_real(item: pytest.Item) -> bool:
    return item.get_closest_marker("real_cluster") is not None


def _is_real_fixture(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> bool:
    if fixturedef.scope == "function":
        return request.node.get_closest_marker("real_cluster") is not None
    return fixturedef.argname in request.config.stash[_REAL_FIXTURES]


# ------------------------------------------------------------------ reports


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the section "fake cluster" to the report of a failed test that used one."""
    report = yield
    choice = item.config.getoption("fake_cluster_report")
    clusters = item.stash.get(_CLUSTERS, ())
    if report.failed and report.when != "teardown" and choice != "off":
        from fakeapiserver.testing.report import text

        repeat = (
            f"repeat its uids, names, addresses and orders: --fake-cluster-seed={item.config.option.fake_cluster_seed}"
        )
        for cluster in clusters:
            report.sections.append(("fake cluster", f"{text(cluster, full=choice == 'full')}\n{repeat}"))
    if report.failed and report.when != "teardown" and clusters and _pages(item.config) is not None:
        _write_pages(item, clusters, report)
    return report


def _pages(config: pytest.Config) -> Path | None:
    """Returns the folder of pages about failed tests, if they are to be written."""
    folder = config.getoption("fake_cluster_html")
    return Path(folder) if folder else None


def _recording(config: pytest.Config, cluster: "Cluster") -> "Cluster":
    """Returns the cluster; it records what happens if pages are to be written."""
    if _pages(config) is not None:
        from fakeapiserver.testing import pages

        pages.record(cluster)
    return cluster


def _write_pages(item: pytest.Item, clusters: "Sequence[Cluster]", report: pytest.TestReport) -> None:
    """Writes pages about a failed test. The report carries their paths, from a worker of xdist to its controller as well."""
    from fakeapiserver.testing import pages

    folder = _pages(item.config)
    assert folder is not None
    try:
        paths = [*pages.write(folder, item.nodeid, clusters, report.longreprtext)]
    except OSError as error:
        report.sections.append(("fake cluster", f"--fake-cluster-html: the page can't be written: {error}"))
    else:
        report.user_properties.extend((_PAGE, str(path)) for path in paths)


# In quotes, since pytest 8.3 has no such name.
def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter", config: pytest.Config) -> None:
    """Shows where the pages about failed tests are."""
    if _pages(config) is None:
        return
    reports = [report for outcome in ("failed", "error") for report in terminalreporter.getreports(outcome)]
    paths = [value for report in reports for name, value in getattr(report, "user_properties", ()) if name == _PAGE]
    if paths:
        terminalreporter.section("pages about fake clusters")
        for path in paths:
            terminalreporter.line(path)


# ------------------------------------------------------------------ options


def _options(config: pytest.Config, node: pytest.Item | pytest.Collector | None) -> dict[str, Any]:
    """The options of a cluster: those of the ini option, then of a node's markers. The marker of a test goes before its class's and
    its module's."""
    options = dict(map(_option_of_line, config.getini("fake_cluster_options")))
    for marker in reversed([*node.iter_markers("fake_cluster")] if node is not None else []):
        if marker.args:
            _refuse(
                f"the marker fake_cluster takes options by name, as in fake_cluster(nodes=3), not {marker.args[0]!r}"
            )
        options.update(marker.kwargs)
    _check_names(options)
    return options


def _option_of_line(line: str) -> tuple[str, Any]:

    name, separator, value = map(str.strip, line.partition("="))
    try:
        return name, literal_eval(value)
    except (ValueError, SyntaxError):
        problem = f'"{value}" is not a Python literal' if separator else "a line is `name = value`"
        _refuse(f"fake_cluster_options: {line}: {problem}, such as 3, 'text' or ['a', 'b']")


def _seed(config: pytest.Config, name: str, number: int) -> int:
    """The seed of a cluster, which depends on its test and the seed of the run, but not on the tests before."""
    text = f"{config.option.fake_cluster_seed} {number} {name}"
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())


def _check_names(options: dict[str, Any]) -> None:
    from fakeapiserver.cluster.options import ClusterOptions
    from fakeapiserver.spelling import did_you_mean

    known = [*ClusterOptions.__annotations__]
    for name in options:
        if name not in known:
            _refuse(f'fake_cluster has no option "{name}"{did_you_mean(name, known)}: it has {", ".join(known)}')


def _budgets_of(item: pytest.Item) -> "Callable[[], None]":
    """Returns a function that checks the budgets of a test's markers after its end."""
    markers = [*item.iter_markers("request_budget")]
    if not markers:
        return lambda: None
    from fakeapiserver.testing import budgets

    try:
        read = [budgets.read(marker.args, marker.kwargs) for marker in markers]
    except ValueError as error:
        _refuse(f"request_budget {error}")

    def check() -> None:
        clusters: list[Cluster] = item.stash.get(_CLUSTERS, [])
        problems = [budgets.excess(budget, clusters) for budget in read]
        if any(problems):
            _refuse("\n".join(filter(None, problems)))

    return check


def _add_faults(cluster: "Cluster", node: pytest.Item) -> None:
    """Adds the faults of a test's markers, those of its module first."""
    for marker in reversed([*node.iter_markers("faults")]):
        if marker.args:
            _refuse(f"the marker faults takes fields by name, as in faults(status=409), not {marker.args[0]!r}")
        try:
            cluster.faults.add(**marker.kwargs)
        except ValueError as error:
            _refuse(f"faults: {error}")


def _refuse(sentence: str) -> NoReturn:
    """Fails the test with nothing but this sentence."""
    pytest.fail(sentence, pytrace=False)


# ------------------------------------------------------------------ fixtures


@pytest.fixture
def fake_cluster(make_fake_cluster: "Callable[..., Cluster]") -> "Cluster":
    """A fresh cluster for this test, running in a thread; every client that isn't given another one uses it.

    The markers `fake_cluster` give its options; a test's own marker overrides its class's and its module's. Works under
    pytest-xdist: every cluster has ports and files of its own."""
    try:
        return make_fake_cluster()
    except (TypeError, ValueError, OSError) as error:
        _refuse(f"fake_cluster: {error}")


@pytest.fixture
def fake_kubeconfig(fake_cluster: "Cluster") -> str:
    """The path of a kubeconfig for this test's cluster."""
    return fake_cluster.kubeconfig


@pytest.fixture
def assert_transcript(request: pytest.FixtureRequest) -> "Callable[[RequestList | str, str], None]":
    """Compares requests with a file in the folder of the test, which --update-transcripts writes:
    `assert_transcript(cluster.requests.by(user="jane"), "jane.txt")`."""
    from fakeapiserver.testing import transcripts

    folder, update = request.path.parent, request.config.option.update_transcripts

    def check(requests: "RequestList | str", name: str) -> None:
        __tracebackhide__ = True
        transcripts.check(requests, folder / name, update=update)

    return check


@pytest.fixture
def make_fake_cluster(request: pytest.FixtureRequest) -> "Iterator[Callable[..., Cluster]]":
    """Starts a cluster with each call: `make_fake_cluster(nodes=1)`. They run until the end of the test. Clients that aren't given
    another one use the first. The options of the test's markers are the defaults."""
    from fakeapiserver.cluster import Cluster
    from fakeapiserver.testing.environment import pointed_at

    _begin_guard_if_used(request)
    defaults = _options(request.config, request.node)
    clusters, made = request.node.stash.setdefault(_CLUSTERS, []), list[Cluster]()
    with ExitStack() as stack:

        def make(**options: Any) -> Cluster:
            _check_names(options)
            seed = _seed(request.config, request.node.nodeid, len(made))
            cluster = stack.enter_context(_recording(request.config, Cluster(**{"seed": seed, **defaults, **options})))
            if not made:
                stack.enter_context(pointed_at(cluster.kubeconfig))
            _add_faults(cluster, request.node)
            made.append(cluster)
            clusters.append(cluster)
            return cluster

        yield make
        clusters.clear()


@pytest.fixture
def fake_cluster_session(_session_cluster: "SharedCluster", request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """The cluster of the whole run (under xdist: of this worker), which is reset after each test. Its options are those of the ini
    option `fake_cluster_options`."""
    yield from _used(_session_cluster, request)


@pytest.fixture
def fake_cluster_module(_module_cluster: "SharedCluster", request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """The cluster of this module, which is reset after each test. The module's markers (`pytestmark`) give its options."""
    yield from _used(_module_cluster, request)


@pytest.fixture(scope="session")
def _session_cluster(request: pytest.FixtureRequest) -> "Iterator[SharedCluster]":
    yield from _shared(request, None)


@pytest.fixture(scope="module")
def _module_cluster(request: pytest.FixtureRequest) -> "Iterator[SharedCluster]":
    yield from _shared(request, request.node)


def _shared(request: pytest.FixtureRequest, node: pytest.Collector | None) -> "Iterator[SharedCluster]":
    from fakeapiserver.cluster import Cluster
    from fakeapiserver.testing.shared import SharedCluster

    _begin_guard_if_used(request)
    seed = _seed(request.config, node.nodeid if node is not None else "session", 0)
    cluster = SharedCluster(_recording(request.config, Cluster(**{"seed": seed, **_options(request.config, node)})))
    cluster.start()
    yield cluster
    cluster.stop()


def _used(shared: "SharedCluster", request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    with shared.used() as cluster:
        _add_faults(cluster, request.node)
        request.node.stash.setdefault(_CLUSTERS, []).append(cluster)
        yield cluster
        request.node.stash[_CLUSTERS].remove(cluster)


def _begin_guard_if_used(request: pytest.FixtureRequest) -> None:
    """For fixtures that are requested by getfixturevalue: the guard doesn't know them when tests are collected."""
    if _guard_choice(request.config) == "auto":
        _begin_guard(request.config)
