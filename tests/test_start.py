"""Modules are loaded when they are needed, so that a server is ready early."""

import subprocess
import sys
from pathlib import Path

import pytest

from fakeapiserver.lazy_modules import LAZY

ROOT = Path(__file__).parents[1]
LATER = sorted(name for names in LAZY.values() for name in names)
_WITHOUT_CONTROLLERS = """import asyncio
from fakeapiserver.server.local import LocalServer
from fakeapiserver.server.options.config import Config
asyncio.run(LocalServer(Config(controllers=("none",))).start())"""
# How something is started -> what it needs of the modules that are loaded late.
STARTS = {
    "import fakeapiserver.cli": set[str](),
    "import fakeapiserver.client, fakeapiserver.controller_runtime": set[str](),
    "import fakeapiserver.testing.plugin": set[str](),
    "from fakeapiserver import Cluster; Cluster().__enter__()": {
        "fakeapiserver.admission.options",
        "fakeapiserver.apis.feature_gates",
        "fakeapiserver.apis.recorded",
        "fakeapiserver.component_helpers.controller_context",
        "fakeapiserver.controller_manager.descriptor",
        "fakeapiserver.controller_manager.manager",
        "fakeapiserver.controllers.clustertrustbundle_publisher",
        "fakeapiserver.controllers.root_ca_certificate_publisher",
        "fakeapiserver.controllers.serviceaccount",
        "fakeapiserver.endpoints.dialect.builtin",
        "fakeapiserver.registry.certificates",
        "fakeapiserver.server.in_process",
        "fakeapiserver.server.options.authorization",
        "fakeapiserver.server.options.config",
    },
    _WITHOUT_CONTROLLERS: {
        "fakeapiserver.admission.options",
        "fakeapiserver.apis.feature_gates",
        "fakeapiserver.apis.recorded",
        "fakeapiserver.controller_manager.descriptor",
        "fakeapiserver.endpoints.dialect.builtin",
        "fakeapiserver.server.options.authorization",
        "fakeapiserver.server.options.config",
    },
}


def test_the_list_names_modules() -> None:
    paths = [ROOT / name.replace(".", "/") for name in LATER]
    assert [
        path for path in paths if not path.with_suffix(".py").exists() and not (path / "__init__.py").exists()
    ] == []


@pytest.mark.parametrize("start", STARTS)
def test_a_start_loads_what_it_needs(start: str) -> None:
    code = f"""{start}
import os, sys, types
for name in {LATER}:
    if type(sys.modules.get(name)) is types.ModuleType:
        print(name)
sys.stdout.flush()
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == STARTS[start]


def test_a_server_without_controllers_holds_nothing_for_operators_and_no_cluster() -> None:
    large = [
        "fakeapiserver.cluster.async_cluster",
        "fakeapiserver.controller_runtime.manager",
        "prometheus_client",
        "html.entities",
    ]
    code = f"""{_WITHOUT_CONTROLLERS}
import os, sys
import fakeapiserver.cli.serve
fakeapiserver.cli.serve.main
print(*set({large}) & set(sys.modules), flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_threads_that_meet_at_a_lazy_module_both_find_it_loaded() -> None:
    code = """
import fakeapiserver, sys, threading
from fakeapiserver.languages.cel import text
barrier, seen = threading.Barrier(8), []
def use():
    barrier.wait()
    seen.append(text.compile_pattern)
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(seen) == 8 and len(set(map(id, seen))) == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_lazy_module_that_fails_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(
        "import os\nif not os.path.exists('there'): raise OSError('not yet')\nvalue = 7\n"
    )
    code = """
import sys
from fakeapiserver import lazy_modules
lazy_modules._NAMES = frozenset(["late"])
import late
try:
    late.value
except OSError:
    open("there", "w").close()
assert late.value == 7 and type(late) is type(sys)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env={"PYTHONPATH": f"{ROOT}:{tmp_path}"})
