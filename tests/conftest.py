"""Sets up every test: hypothesis tries the same examples each time, and a busy machine changes no result.

`--hypothesis-profile=default` tries new examples each time, and `--hypothesis-seed=N` those of the seed N.
"""

import os
import shutil
import sys
import tempfile
from contextlib import suppress

import pytest

from tests.storage_agreement import agreement, found_differences

__all__ = ["agreement", "found_differences"]

with suppress(ImportError):  # other interpreters run what doesn't need it
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "seeded", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("seeded")


def pytest_configure(config: pytest.Config) -> None:
    """Keeps compiled modules for the hundreds of processes that tests start, where the environment forbids to write them.

    They go to a temporary folder, which the processes of xdist share. Each process would compile the package again.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        folder = tempfile.mkdtemp(prefix="fakeapiserver-bytecode-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = folder
        sys.dont_write_bytecode = False
