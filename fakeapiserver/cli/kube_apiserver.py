"""Stands in for the kube-apiserver program: its flags, its defaults, its certificates, its exit statuses. See envtest_assets.py.

Upstream: cmd/kube-apiserver/app; k8s.io/apiserver/pkg/server/options/serving.go for the serving certificate.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fakeapiserver.apis.recorded import NEWEST, release_of
from fakeapiserver.cli import serve, stop_signals
from fakeapiserver.cli.arguments import UsageError
from fakeapiserver.cli.envtest_assets import help_text
from fakeapiserver.cli.etcd_stand_in import lives
from fakeapiserver.cli.flags import Parsed, parse
from fakeapiserver.cli.unheeded_flags import UNENCRYPTED
from fakeapiserver.server.options.config import Config, EtcdOptions
from fakeapiserver.server.own_certificates import serving_names
from fakeapiserver.transport import certificates

if TYPE_CHECKING:
    import asyncio

_PARENT_CHECK: Final = 1.0  # seconds
# What is said without these flags, in upstream's words.
_REQUIRED: Final = {
    "etcd-servers": "--etcd-servers must be specified",
    "service-account-issuer": "service-account-issuer is a required flag",
    "service-account-key-file": "either `--service-account-key-file` or `--service-account-signing-endpoint` must be set",
}
# Without effect here, yet not worth a warning: what every envtest gives, and what concerns etcd.
_SILENT: Final = ("--allow-privileged ", "--etcd-")


def main(arguments: Sequence[str], parent: int = 0, version: str = NEWEST) -> int:
    """Serves the minor version `version`.

    Returns 0 after a signal, or when the process `parent` that started it is gone (0: lives on); 1 when it can't start.
    """
    try:
        parsed = parse(arguments, upstream_defaults(version))
        if "help" in parsed.given:
            print(help_text(version), end="")
            return 0
        if "version" in parsed.given:
            print(f"Kubernetes {release_of(version)}")
            return 0
        _check(parsed)
        return _run(parsed, parent)
    except (OSError, ValueError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def upstream_defaults(version: str = NEWEST) -> Config:
    """Returns kube-apiserver's configuration without flags."""
    return Config(
        kubernetes_version=version,
        bind_address="0.0.0.0",
        secure_port=6443,
        cert_dir=Path("/var/run/kubernetes"),
        authorization_mode=("AlwaysAllow",),
        disable_admission_plugins=(),
        controllers=(),
    )


def _check(parsed: Parsed) -> None:
    """Checks what parsing leaves unchecked. Raises UsageError."""
    if parsed.command:
        raise UsageError(f'"kube-apiserver" does not take any arguments, got {parsed.command}')
    given = parsed.given
    missing = [sentence for flag, sentence in _REQUIRED.items() if not given.get(flag)]
    signing, issuer = given.get("service-account-signing-key-file"), given.get("service-account-issuer")
    if not (signing or issuer):
        missing.append("--service-account-signing-key-file and --service-account-issuer are required flags")
    elif not (signing and issuer):
        missing.append(
            "--service-account-signing-key-file, --service-account-issuer, and --api-audiences should be specified together"
        )
    if missing:
        raise UsageError(missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]")


def _run(parsed: Parsed, parent: int) -> int:
    async def run() -> int:
        stop = stop_signals.StopSignals()
        if parent:
            _stop_without(parent, stop, asyncio.get_running_loop())
        await serve.serve(parsed.config, lambda _: None, stop)
        return 0

    for warning in parsed.warnings:
        if not warning.startswith(_SILENT):
            print(f"Warning: {warning}", file=sys.stderr)
    serve.configure_logging(parsed.verbosity)
    if parsed.config.etcd.encryption_config is not None:
        print(f"Warning: {UNENCRYPTED}", file=sys.stderr)
    parsed.config.etcd = EtcdOptions()  # envtest's, which may be the stand-in
    _use_serving_files(parsed.config)
    return serve.run_loop(run())


def _use_serving_files(config: Config) -> None:
    """Without --tls-cert-file it is apiserver.crt in --cert-dir, made when it isn't there."""
    if config.tls_cert_file is None and config.cert_dir is not None:
        try:
            if certificates.load(config.cert_dir, "apiserver") is None:
                certificates.save(
                    config.cert_dir,
                    "apiserver",
                    certificates.issue_server(certificates.create_authority(), serving_names(config)),
                )
        except OSError as error:
            raise OSError(f"can't use --cert-dir {config.cert_dir}: {error.strerror}") from error
        config.tls_cert_file = config.cert_dir / "apiserver.crt"
        config.tls_private_key_file = config.cert_dir / "apiserver.key"
    config.cert_dir = None  # nothing else is kept there


def _stop_without(parent: int, stop: "asyncio.Event", loop: "asyncio.AbstractEventLoop") -> None:
    """Stops the server once the process `parent` has ended: a test run that is killed stops nothing that it has started."""
    if lives(parent):
        loop.call_later(_PARENT_CHECK, _stop_without, parent, stop, loop)
    else:
        stop.set()
