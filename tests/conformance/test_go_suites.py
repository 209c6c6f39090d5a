"""Tests how the results of Go modules' suites are read; running them takes minutes and is left to the commands themselves."""

import json

import pytest

from conformance.suites import gateway_api
from conformance.suites.controller_runtime import MODULE, package_path
from conformance.suites.go_suites import Suite, read, table

PACKAGE = "sigs.k8s.io/controller-runtime/pkg/"


def event(action: str, package: str, test: str = "", **more: object) -> str:
    named = {"Test": test} if test else {}
    return json.dumps({"Action": action, "Package": PACKAGE + package, **named, **more}) + "\n"


GINKGO = [
    event("run", "client", "TestSource"),
    event("output", "client", "TestSource", Output="Running Suite: Client Suite - /pkg/client\n"),
    event("output", "client", "TestSource", Output="Summarizing 1 Failure:\n"),
    event("output", "client", "TestSource", Output="  [FAIL] Client Create [It] should create\n"),
    event("output", "client", "TestSource", Output="Ran 3 of 5 Specs in 1.2 seconds\n"),
    event(
        "output",
        "client",
        "TestSource",
        Output="\x1b[1mFAIL!\x1b[0m -- \x1b[38;5;10m2 Passed\x1b[0m | 1 Failed | 1 Pending | 1 Skipped\n",
    ),
    event("fail", "client", "TestSource", Elapsed=1.2),
    event("fail", "client", Elapsed=1.5),
]
PLAIN = [
    event("pass", "apiutil", "TestMapper/first", Elapsed=0.1),
    event("fail", "apiutil", "TestMapper/second", Elapsed=0.1),
    event("fail", "apiutil", "TestMapper", Elapsed=0.2),
    event("skip", "apiutil", "TestOther", Elapsed=0),
    event("fail", "apiutil", Elapsed=0.3),
]


def test_specs_are_counted_where_ginkgo_runs() -> None:
    suite = read(GINKGO, MODULE.path)["pkg/client"]
    assert (suite.passed, suite.failed, suite.pending, suite.seconds) == (2, 1, 2, 1.5)
    assert suite.failures == ["Client Create [It] should create"]


def test_tests_are_counted_elsewhere_without_those_that_hold_others() -> None:
    suite = read(PLAIN, MODULE.path)["pkg/apiutil"]
    assert (suite.passed, suite.failed, suite.pending) == (1, 1, 1)
    assert suite.failures == ["TestMapper/second"]


def test_a_package_that_does_not_build_is_a_failure_and_one_without_tests_none() -> None:
    suites = read([event("fail", "broken", Elapsed=0), event("skip", "empty", Elapsed=0)], MODULE.path)
    assert [(name, suite.failed) for name, suite in suites.items()] == [("pkg/broken", 1)]


def test_the_table_sums_up() -> None:
    assert table(read([*GINKGO, *PLAIN], MODULE.path)).splitlines()[2:] == [
        "| pkg/apiutil | 1 | 1 | 1 | 0 |",
        "| pkg/client | 2 | 1 | 2 | 2 |",
        "| **all** | 3 | 2 | 3 | 2 |",
    ]


@pytest.mark.parametrize("name", ["client/...", "pkg/client/...", "./pkg/client/..."])
def test_packages_may_be_named_shortly(name: str) -> None:
    assert package_path(name) == "./pkg/client/..."


def test_tests_that_fail_on_the_real_server_too_are_taken_for_not_run() -> None:
    suite = Suite(passed=3, failed=2, failures=[*sorted(gateway_api.OUTDATED)[:1], "TestOther"])
    found = gateway_api.without_outdated(suite)
    assert (found.passed, found.failed, found.pending, found.failures) == (3, 1, 1, ["TestOther"])
