"""Runs the operator: `python -m welcome_operator --help`."""

import argparse
import asyncio
import logging
from collections.abc import Sequence

from fakeapiserver.client import kubeconfig
from fakeapiserver.controller_runtime import Manager, ManagerOptions
from fakeapiserver.controller_runtime.healthz import ping
from fakeapiserver.controller_runtime.logging import JSONFormatter
from fakeapiserver.controller_runtime.webhook.server import WebhookServer

from welcome_operator.setup import setup


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs until SIGTERM or SIGINT."""
    flags = _parser().parse_args(arguments)
    handler = logging.StreamHandler()
    handler.setFormatter(JSONFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    options = ManagerOptions(
        leader_election=flags.leader_elect,
        leader_election_id="welcome-operator.example.com",
        leader_election_release_on_cancel=True,
        metrics_bind_address=flags.metrics_bind_address,
        health_probe_bind_address=flags.health_probe_bind_address,
        webhook_server=WebhookServer(port=flags.webhook_port, cert_dir=flags.webhook_cert_path)
        if flags.webhook_cert_path
        else None,
        field_owner="welcome-operator",
    )
    manager = Manager(kubeconfig.load(flags.kubeconfig), options)
    manager.add_healthz_check("healthz", ping)
    manager.add_readyz_check("readyz", ping)
    setup(manager, webhooks=bool(flags.webhook_cert_path))
    asyncio.run(manager.run_until_signal())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("welcome-operator")
    parser.add_argument("--kubeconfig", help="path of a kubeconfig; by default what kubectl uses, or the pod's account")
    parser.add_argument("--leader-elect", action="store_true", help="run on one of several replicas only")
    parser.add_argument("--metrics-bind-address", default="0", help="where /metrics is, such as :8080; 0 for nowhere")
    parser.add_argument("--health-probe-bind-address", default=":8081", help="where /healthz and /readyz are")
    parser.add_argument("--webhook-cert-path", default="", help="folder with tls.crt and tls.key; no webhooks without")
    parser.add_argument("--webhook-port", type=int, default=9443)
    return parser


if __name__ == "__main__":
    main()
