"""Lists the checks of the suite."""

from typing import Final

from fakeapiserver.testing.storage_suite import histories, lists, reads, watches, watching, writes
from fakeapiserver.testing.storage_suite.pods import Check

_MODULES: Final = (writes, reads, lists, watches, watching, histories)


def checks() -> list[Check]:
    """Every run_test_* function of the suite, by name."""
    found = {name: value for module in _MODULES for name, value in vars(module).items() if name.startswith("run_test_")}
    return [check for _, check in sorted(found.items())]
