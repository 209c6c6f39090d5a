"""Guarantees whose cases are tests of the repository: runs these tests, which a checkout has and an installed package hasn't."""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from conformance.robustness.guarantees.guarantee import Report, Skipped

_ROOT: Final = Path(__file__).parents[3]
_COUNT: Final = re.compile(r"(\d+) (passed|failed|skipped|errors?)")
# Seconds that the tests of one name may take.
_PATIENCE: Final = 3600.0
_FAILED: Final = "FAILED "


class _Tests(Struct, frozen=True):
    promise: str
    paths: Sequence[str]


TESTS: Final[Mapping[str, _Tests]] = {
    "storage-suite": _Tests(
        "The memory, the file and etcd pass the suite of k8s.io/apiserver's storages.", ("tests/storage",)
    ),
    "texts": _Tests(
        "JSON, YAML, CBOR and patches are read as Go's libraries read them, in time that grows with their size.",
        ("tests/apimachinery/serializer", "tests/apimachinery/patch", "tests/apimachinery/test_growth.py"),
    ),
    "credentials": _Tests(
        "Tokens and certificates that kube-apiserver refuses are refused.",
        (
            "tests/auth/test_attacks.py",
            "tests/auth/test_authenticators.py",
            "tests/auth/test_bootstrap_tokens.py",
            "tests/auth/test_certificate_verdicts.py",
            "tests/auth/test_oidc.py",
            "tests/auth/test_service_account_tokens.py",
            "tests/server/http/test_client_authorities.py",
        ),
    ),
    "refusals": _Tests(
        "What a client may not do is refused, by each path to it.",
        ("tests/auth", "tests/admission", "tests/server/test_strangers.py", "tests/server/filters"),
    ),
    "limits": _Tests(
        "kube-apiserver's limits hold at their edges.",
        ("tests/server/http", "tests/server/test_requests.py", "tests/apimachinery/patch/test_json_patch.py"),
    ),
    "secrets": _Tests(
        "Credentials and Secrets are in no output, log, metric or page.", ("tests/server/test_secrets_stay_secret.py",)
    ),
    "clock": _Tests(
        "A clock that is turned or stopped breaks nothing.",
        ("tests/cluster/test_controllers_and_time.py", "tests/cli/test_clock.py", "tests/test_clock.py"),
    ),
}


def suite(name: str) -> Callable[[bool], Report]:
    """Returns the run of a name of TESTS: the slow tests as well in full."""

    paths = TESTS[name].paths

    def run(full: bool) -> Report:
        missing = [path for path in paths if not (_ROOT / path).exists()]
        if missing:
            raise Skipped(f"{missing[0]} is not here: a checkout of the repository is needed")
        words = ["-m", "pytest", "--no-header", "-p", "no:cacheprovider", *(("-m", "") if full else ()), *paths]
        done = subprocess.run(
            [sys.executable, *words], cwd=_ROOT, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
        lines = done.stdout.splitlines()
        counts = {kind: int(count) for count, kind in _COUNT.findall(lines[-1] if lines else "")}
        problems = [line for line in lines if line.startswith((_FAILED, "ERROR "))]
        if done.returncode != 0 and not problems:
            problems.append(f"pytest ended with {done.returncode}: {done.stdout[-500:]} {done.stderr[-500:]}")
        return Report({f"tests that {kind}": f"{count:,}" for kind, count in counts.items()}, problems)

    return run
