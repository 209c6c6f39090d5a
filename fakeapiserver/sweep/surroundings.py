"""The surroundings of an operator in a scenario: its environment, its webhooks, and what the containers of simulated pods do."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct, field
from pydantic import ValidationError

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.cluster.cluster import Cluster
from fakeapiserver.cluster.options import ClusterOptions
from fakeapiserver.cluster.processes import pod
from fakeapiserver.cluster.processes.pod import Pod
from fakeapiserver.server.control.nodes import Script

FIELDS: Final = frozenset(
    ("crds", "nodes", "env", "webhooks", "webhookPort", "stages", "scripts", "isolate", "sidecar")
)
_MOST_NODES: Final = 1000
_LAST_PORT: Final = 65535


class Surroundings(Struct, frozen=True):
    """`env`: variables of the operator's environment. `has_webhooks`: no step begins before its webhook server answers. `scripts`: as
    `cluster.nodes.script` takes them. `fixed_port`: where the operator serves webhooks, 0 for a port that it is given. `is_isolated`: it
    runs in a pod of its own, in this namespace, and beside a `sidecar`, a command."""

    env: Mapping[str, str] = field(default_factory=dict)
    has_webhooks: bool = False
    scripts: Sequence[Mapping[str, Any]] = ()
    fixed_port: int = 0
    is_isolated: bool = False
    namespace: str = "default"
    sidecar: Sequence[str] = ()

    @property
    def runs_alone(self) -> bool:
        """Reports whether a second operator couldn't have its port at the same time."""
        return bool(self.fixed_port) and not self.is_isolated

    def pod(self, cluster: Cluster, user: str, groups: Sequence[str]) -> Pod | None:
        """The pod of an operator that runs as a user of these groups, or None if it shares the network of this machine."""
        if not self.is_isolated:
            return None
        port = urlsplit(cluster.url).port or 0
        return Pod(
            port, cluster.user_token(user, groups), cluster.ca.decode(), self.namespace, self.fixed_port, self.sidecar
        )

    def prepare(self, cluster: Cluster) -> None:
        """Scripts the nodes of a new cluster. A fork has the scripts of its origin."""
        for script in self.scripts:
            cluster.nodes.script(**script)


def read(document: Mapping[str, Any], folder: Path, name: str) -> tuple[ClusterOptions, Surroundings]:
    """The options of the clusters, and the surroundings, that the fields of a scenario describe. Paths are relative to `folder`. Raises
    ValueError with one sentence that begins with `name`."""
    nodes = _number(document, "nodes", _MOST_NODES, name)
    options = ClusterOptions(
        nodes=nodes,
        local_storage=nodes > 0,
        cloud_storage=nodes > 0,
        load_balancers=nodes > 0,
        crds=_sources(document, "crds", folder, name),
    )
    webhooks = _sources(document, "webhooks", folder, name)
    if webhooks:
        options["webhooks"] = webhooks
    port = _number(document, "webhookPort", _LAST_PORT, name)
    is_isolated = _is_isolated(document, name)
    if port and not is_isolated:
        options["webhook_port"] = port
    if stages := _sources(document, "stages", folder, name):
        options["stages"] = stages
    scripts = _scripts(document, name)
    if scripts and not nodes:
        raise ValueError(f"{name}: scripts need simulated nodes: add `nodes: 1`")
    has_webhooks = bool(webhooks) or "webhookPort" in document
    env = _environment(document, name)
    return options, Surroundings(
        env, has_webhooks, scripts, port, is_isolated, _namespace(document), _sidecar(document, name)
    )


def _is_isolated(document: Mapping[str, Any], name: str) -> bool:
    value = document.get("isolate", False)
    if not isinstance(value, bool):
        raise ValueError(f"{name}: isolate is true or false, not {value!r}")
    if value and (problem := pod.problem()):
        raise ValueError(f"{name}: isolate: {problem}")
    return value


def _sidecar(document: Mapping[str, Any], name: str) -> Sequence[str]:
    value = document.get("sidecar") or ""
    if not isinstance(value, str):
        raise ValueError(f"{name}: sidecar is a command, not {value!r}")
    if value and not document.get("isolate"):
        raise ValueError(f"{name}: a sidecar needs a network that it shares with the operator: add `isolate: true`")
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"{name}: sidecar: {error}") from None


def _namespace(document: Mapping[str, Any]) -> str:
    """The operator's own namespace: that of its service account, or that of the scenario."""
    account = str(document.get("serviceAccount") or "")
    return account.partition("/")[0] or str(document.get("namespace") or "default")


def _number(document: Mapping[str, Any], field: str, most: int, name: str) -> int:
    value = document.get(field) or 0
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{name}: {field} is a number from 0 to {most}, not {value!r}")
    return value


def _sources(document: Mapping[str, Any], field: str, folder: Path, name: str) -> list[Path | Object]:
    """Files, folders and objects."""
    value = document.get(field) or []
    several = value if isinstance(value, list) else [value]
    for each in several:
        if not isinstance(each, str | Mapping):
            raise ValueError(f"{name}: {field} are files, folders or objects, not {each!r}")
    return [folder / each if isinstance(each, str) else dict(each) for each in several]


def _environment(document: Mapping[str, Any], name: str) -> Mapping[str, str]:
    value = document.get("env") or {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}: env has names and values, such as {{ENABLE_WEBHOOKS: 'true'}}, not {value!r}")
    for variable, text in value.items():
        if not isinstance(text, str):
            raise ValueError(f"{name}: env: the value of {variable} is a text: write it in quotes, not {text!r}")
    return {str(variable): text for variable, text in value.items()}


def _scripts(document: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = document.get("scripts") or []
    if not isinstance(value, list):
        raise ValueError(f"{name}: scripts is a list, such as [{{selector: app=web, ready_after: 5}}], not {value!r}")
    return [_script(each, f"{name}: script {number}") for number, each in enumerate(value, 1)]


def _script(value: Any, name: str) -> Mapping[str, Any]:
    try:
        return Script.model_validate(value).changes()
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{name}: {place}: {first['msg']}" if place else f"{name}: {first['msg']}") from None
