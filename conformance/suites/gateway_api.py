"""Gateway API's own tests of its definitions and their CEL rules against this server: `python -m conformance.suites.gateway_api`.

The module comes by the ordinary go command and is copied out of its cache. For each of its channels a server is started and
the channel's definitions are applied; then its tests create and update objects that its rules must let pass or refuse.
`--assets` names a folder with the real programs, which are used instead. Needs Go and some minutes.
"""

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from conformance.bench.servers import TOKEN, Ours, Reference, Server
from conformance.exchange import Client
from conformance.suites import go_suites
from conformance.suites.go_suites import Module, Suite
from conformance.suites.operators.comparing import DEFINITIONS, SETTLE_SECONDS, condition
from conformance.suites.operators.packages import documents

# The last one whose tests are part of the module.
MODULE: Final = Module("sigs.k8s.io/gateway-api", "v1.2.1")
CHANNELS: Final = ("standard", "experimental")
# Tests that look for words of older servers; the real 1.36 fails them too.
OUTDATED: Final = frozenset(
    {
        "TestGatewayInfrastructureLabels/invalid_label_value_with_too_many_characters",
        "TestHTTPRouteTimeouts/invalid_timeout_request_200ms_less_than_backendRequest_1s",
    }
)
_PACKAGE: Final = "./pkg/test/cel"


def run(server: Server, channel: str, sources: Path) -> Suite:
    """The tests of one channel against a server that is started for them."""
    server.start()
    try:
        _define(Client(server.url, TOKEN), sources / "config" / "crd" / channel)
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = Path(folder) / "kubeconfig"
            kubeconfig.write_text(json.dumps(_kubeconfig(server.url)))
            words = [f"-tags={channel}", _PACKAGE]
            (suite,) = MODULE.test(words, sources, {"KUBECONFIG": str(kubeconfig)}).values()
            return without_outdated(suite)
    finally:
        server.stop()


def without_outdated(suite: Suite) -> Suite:
    """The result with the tests that can't pass taken for not run."""
    failures = [name for name in suite.failures if name not in OUTDATED]
    outdated = len(suite.failures) - len(failures)
    return replace(suite, failed=suite.failed - outdated, pending=suite.pending + outdated, failures=failures)


def _define(client: Client, folder: Path) -> None:
    """Creates a folder's definitions and waits until objects can be created."""
    for path in sorted(folder.glob("*.yaml")):
        for definition in documents(path.read_bytes()):
            if definition.get("kind") == "CustomResourceDefinition":
                client.send({"method": "POST", "path": DEFINITIONS, "body": definition}, [])
                one = {"method": "GET", "path": f"{DEFINITIONS}/{definition['metadata']['name']}"}
                while condition(client.send(one, [])["body"], "Established") != "True":
                    time.sleep(0.1)
    time.sleep(SETTLE_SECONDS)


def _kubeconfig(url: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }


def main() -> int:
    arguments = go_suites.arguments(__doc__).parse_args()
    if not go_suites.has_go("gateway_api"):
        return 1
    sources = MODULE.fetch(arguments.sources)
    suites = {
        channel: run(Reference(arguments.assets) if arguments.assets else Ours(), channel, sources)
        for channel in CHANNELS
    }
    return go_suites.report(suites, arguments.output, arguments.minimum)


if __name__ == "__main__":
    sys.exit(main())
