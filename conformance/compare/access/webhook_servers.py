"""Other projects' webhook servers, called by a real server and by another one: `python -m conformance.compare.access.webhook_servers
--oracle URL --oracle-token T --server URL --token T [NAME ...]`.

- `controller-runtime`: its webhook server with a defaulter and a validator of ConfigMaps.
- `cert-manager`: its own webhook with its published definitions; valid and broken Certificates, Issuers and requests.

The modules come by the ordinary go command and are copied out of its cache; what starts them is in here. Each server gets an
instance of its own, and the same requests; whole answers are compared. Needs Go and some minutes.
"""

import base64
import copy
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from conformance.compare.customresources import DEFINITIONS, Differences, Request
from conformance.exchange import Client, comparing
from conformance.players.tls_server import self_signed
from conformance.suites.go_suites import Module, has_go

Object = dict[str, Any]
_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
_SETTLING: Final = 2.0  # seconds until a real server uses new configurations
_MERGE: Final = "application/merge-patch+json"

_CONTROLLER_RUNTIME: Final = """\
package main

import (
	"context"
	"errors"
	"flag"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type hook struct{}

func (hook) Default(ctx context.Context, obj *corev1.ConfigMap) error {
	if obj.Data["fail"] != "" {
		return errors.New(obj.Data["fail"])
	}
	if obj.Data == nil {
		obj.Data = map[string]string{}
	}
	if obj.Data["size"] == "" {
		obj.Data["size"] = "1"
	}
	if obj.Labels == nil {
		obj.Labels = map[string]string{}
	}
	obj.Labels["defaulted"] = "yes"
	delete(obj.Data, "drop")
	return nil
}

func verdict(obj *corev1.ConfigMap) (admission.Warnings, error) {
	var warnings admission.Warnings
	if text := obj.Data["warn"]; text != "" {
		warnings = append(warnings, text, "twice "+text)
	}
	resource := schema.GroupResource{Resource: "configmaps"}
	switch obj.Data["deny"] {
	case "plain":
		return warnings, errors.New("not like this")
	case "invalid":
		return warnings, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, obj.Name, field.ErrorList{
			field.Invalid(field.NewPath("data", "size"), obj.Data["size"], "too small"),
			field.Required(field.NewPath("data", "owner"), "")})
	case "forbidden":
		return warnings, apierrors.NewForbidden(resource, obj.Name, errors.New("no"))
	case "conflict":
		return warnings, apierrors.NewConflict(resource, obj.Name, errors.New("again"))
	case "retry":
		return warnings, apierrors.NewTooManyRequests("slowly", 3)
	case "panic":
		panic("oh")
	}
	return warnings, nil
}

func (hook) ValidateCreate(ctx context.Context, obj *corev1.ConfigMap) (admission.Warnings, error) {
	return verdict(obj)
}

func (hook) ValidateUpdate(ctx context.Context, old, obj *corev1.ConfigMap) (admission.Warnings, error) {
	if old.Data["fixed"] != obj.Data["fixed"] {
		return nil, errors.New("fixed was " + old.Data["fixed"])
	}
	return verdict(obj)
}

func (hook) ValidateDelete(ctx context.Context, obj *corev1.ConfigMap) (admission.Warnings, error) {
	if obj.Data["keep"] != "" {
		return nil, errors.New("is to be kept")
	}
	return admission.Warnings{"gone"}, nil
}

func main() {
	port := flag.Int("port", 0, "")
	certs := flag.String("certs", "", "")
	flag.String("server", "", "")
	flag.Parse()
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *certs})
	server.Register("/mutate", admission.WithDefaulter[*corev1.ConfigMap](scheme.Scheme, hook{}))
	server.Register("/validate", admission.WithValidator[*corev1.ConfigMap](scheme.Scheme, hook{}))
	if err := server.Start(context.Background()); err != nil {
		panic(err)
	}
	os.Exit(0)
}
"""

_CERT_MANAGER: Final = """\
package main

import (
	"context"
	"flag"

	config "github.com/cert-manager/cert-manager/internal/apis/config/webhook"
	"github.com/cert-manager/cert-manager/internal/webhook"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
)

func main() {
	port := flag.Int("port", 0, "")
	certs := flag.String("certs", "", "")
	kubeconfig := flag.String("server", "", "")
	flag.Parse()
	options := config.WebhookConfiguration{SecurePort: int32(*port), KubeConfig: *kubeconfig, MetricsListenAddress: "0"}
	options.TLSConfig.Filesystem.CertFile = *certs + "/tls.crt"
	options.TLSConfig.Filesystem.KeyFile = *certs + "/tls.key"
	server, err := webhook.NewCertManagerWebhookServer(logf.Log, options)
	if err != nil {
		panic(err)
	}
	if err := server.Run(context.Background()); err != nil {
		panic(err)
	}
}
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A webhook server: what starts it, and the rules under which its `/mutate` and `/validate` are asked. `definitions` is a folder
    of the module's sources."""

    module: Module
    source: str
    mutated: Object
    validated: Object
    definitions: str = ""

    def build(self, folder: Path) -> tuple[Path, Path]:
        """The sources, and the program. CalledProcessError, OSError."""
        sources = self.module.fetch(folder)
        package = sources / "internal" / "conformance"
        shutil.rmtree(package, ignore_errors=True)
        package.mkdir(parents=True)
        (package / "main.go").write_text(self.source)
        program = folder / f"{sources.name}-webhook"
        subprocess.run(["go", "build", "-o", str(program), "./internal/conformance"], check=True, cwd=sources)
        return sources, program


def _rule(groups: list[str], operations: list[str], resources: list[str]) -> Object:
    return {"apiGroups": groups, "apiVersions": ["v1"], "operations": operations, "resources": resources}


_WRITES: Final = ["CREATE", "UPDATE"]
PROGRAMS: Final = {
    "controller-runtime": Program(
        Module("sigs.k8s.io/controller-runtime", "v0.24.1"),
        _CONTROLLER_RUNTIME,
        _rule([""], _WRITES, ["configmaps"]),
        _rule([""], [*_WRITES, "DELETE"], ["configmaps"]),
    ),
    "cert-manager": Program(
        Module("github.com/cert-manager/cert-manager", "v1.21.2"),
        _CERT_MANAGER,
        _rule(["cert-manager.io"], ["CREATE"], ["certificaterequests"]),
        _rule(["cert-manager.io", "acme.cert-manager.io"], _WRITES, ["*/*"]),
        "deploy/crds",
    ),
}


# ------------------------------------------------------------------ requests


def _writes(namespace: str, path: str, name: str, body: Object, changes: Sequence[Object]) -> Iterator[Request]:
    """An object made, changed in some ways, and removed."""
    place = path.format(namespace)
    yield {"method": "POST", "path": place, "body": {**body, "metadata": {"name": name, **body.get("metadata", {})}}}
    for change in changes:
        yield {"method": "PATCH", "path": f"{place}/{name}", "body": change, "type": _MERGE}
    yield {"method": "DELETE", "path": f"{place}/{name}"}
    yield {"method": "GET", "path": f"{place}/{name}"}


def _configmaps(namespace: str) -> Iterator[Request]:
    path = "/api/v1/namespaces/{}/configmaps"
    denials = ("plain", "invalid", "forbidden", "conflict", "retry", "panic")
    datas: list[Any] = [None, {}, {"size": "3"}, {"drop": "x"}, {"fail": "no"}, {"warn": "careful"}, {"keep": "x"}]
    datas += [{"deny": denial, "warn": "so"} for denial in denials]
    for number, data in enumerate(datas):
        body = {} if data is None else {"data": data}
        changes: list[Object] = [
            {"data": {"fixed": "x"}},
            {"data": {"deny": "invalid"}},
            {"data": {"drop": "x", "more": "y"}},
        ]
        yield from _writes(namespace, path, f"c{number}", body, changes)
    yield {"method": "DELETE", "path": path.format(namespace)}


_CERTIFICATE: Final = {"secretName": "s", "dnsNames": ["example.com"], "issuerRef": {"name": "i", "kind": "Issuer"}}
_CERTIFICATES: Final[tuple[Object, ...]] = (
    {},
    {"dnsNames": []},
    {"commonName": "x" * 65},
    {"duration": "1h", "renewBefore": "2h"},
    {"duration": "1m"},
    {"renewBefore": "1s"},
    {"usages": ["signing", "nothing"]},
    {"issuerRef": {"name": ""}},
    {"issuerRef": {"name": "i", "kind": "Nothing"}},
    {"issuerRef": {"name": "i", "kind": "Other", "group": "other.example.com"}},
    {"secretName": ""},
    {"privateKey": {"algorithm": "RSA", "size": 512}},
    {"privateKey": {"algorithm": "ECDSA", "size": 333}},
    {"privateKey": {"algorithm": "Ed25519", "size": 3}},
    {"ipAddresses": ["10.0.0.1", "nowhere"]},
    {"emailAddresses": ["a@b.c", "A <a@b.c>"]},
    {"uris": ["spiffe://x"]},
    {"revisionHistoryLimit": 0},
    {"literalSubject": "CN=x", "commonName": "y"},
    {"secretTemplate": {"annotations": {"cert-manager.io/x": "y"}}},
    {"additionalOutputFormats": [{"type": "DER"}, {"type": "DER"}]},
    {"keystores": {"jks": {"create": True}}},
)  # fmt: skip
_ISSUERS: Final[tuple[Object, ...]] = (
    {"selfSigned": {}},
    {},
    {"selfSigned": {}, "ca": {"secretName": "s"}},
    {"ca": {"secretName": ""}},
    {"ca": {"secretName": "s", "ocspServers": [""]}},
    {"vault": {"server": "", "path": "", "auth": {}}},
    {"vault": {"server": "https://v", "path": "p", "auth": {"tokenSecretRef": {"name": "t", "key": "k"}}, "caBundle": "eA=="}},
    {"venafi": {"zone": ""}},
    {"acme": {"server": "", "privateKeySecretRef": {"name": "k"}}},
    {"acme": {"server": "https://a", "privateKeySecretRef": {"name": "k"}, "solvers": [{}]}},
    {"acme": {"server": "https://a", "privateKeySecretRef": {"name": "k"}, "solvers": [{"dns01": {}}]}},
    {"acme": {"server": "https://a", "privateKeySecretRef": {"name": "k"}, "solvers": [{"http01": {"ingress": {}}}]}},
    {"acme": {"server": "https://a", "privateKeySecretRef": {"name": ""}, "email": "x"}},
)  # fmt: skip


def _certificates(namespace: str) -> Iterator[Request]:
    base = "/apis/cert-manager.io/v1/namespaces/{}/"
    for number, change in enumerate(_CERTIFICATES):
        body = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "spec": {**_CERTIFICATE, **change}}
        changes: list[Object] = [
            {"spec": {"dnsNames": None}},
            {"spec": {"duration": "5m"}},
            {"metadata": {"labels": {"a": "b"}}},
        ]
        yield from _writes(namespace, base + "certificates", f"c{number}", body, changes)
    for number, spec in enumerate(_ISSUERS):
        body = {"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "spec": spec}
        yield from _writes(
            namespace, base + "issuers", f"i{number}", body, [{"spec": {"selfSigned": {}}}, {"spec": None}]
        )
    for number, text in enumerate(
        ("", "not PEM", "-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----")
    ):
        request = base64.b64encode(text.encode()).decode()
        spec = {"request": request, "issuerRef": {"name": "i"}}
        body = {"apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest", "spec": spec}
        yield from _writes(namespace, base + "certificaterequests", f"r{number}", body, [{"spec": {"username": "eve"}}])


_REQUESTS: Final = {"controller-runtime": _configmaps, "cert-manager": _certificates}


# ------------------------------------------------------------------- running


@contextmanager
def running(program: Path, folder: Path, client: Client) -> Iterator[tuple[str, str]]:
    """The webhook's URL, and its certificate for a `caBundle`."""
    key, certificate = self_signed()
    (folder / "tls.key").write_bytes(key)
    (folder / "tls.crt").write_bytes(certificate)
    cluster = {"server": client.url, "insecure-skip-tls-verify": True}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": client.token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (folder / "kubeconfig").write_text(json.dumps(config))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(program), f"--port={port}", f"--certs={folder}", f"--server={folder}/kubeconfig"]
    log = (folder / "log").open("w")
    with log, subprocess.Popen(command, stdout=log, stderr=log, env=os.environ) as process:
        try:
            _await(port, process, folder / "log")
            yield f"https://127.0.0.1:{port}", base64.b64encode(certificate).decode()
        finally:
            process.kill()


def _await(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise OSError(f"the webhook doesn't listen: {log.read_text()[-2000:]}")


def _install(client: Client, name: str, program: Program, sources: Path, namespace: str, url: str, bundle: str) -> None:
    import yaml

    for file in sorted((sources / program.definitions).glob("*.yaml")) if program.definitions else ():
        for body in yaml.safe_load_all(file.read_text()):
            client.send({"method": "POST", "path": DEFINITIONS, "body": body}, [])
    client.send({"method": "POST", "path": "/api/v1/namespaces", "body": {"metadata": {"name": namespace}}}, [])
    for sort, path, rule in (("mutating", "mutate", program.mutated), ("validating", "validate", program.validated)):
        hook = {
            "name": f"{name}.example.com",
            "clientConfig": {"url": f"{url}/{path}", "caBundle": bundle},
            "rules": [rule],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        }
        body = {"metadata": {"name": f"webhook-servers-{name}"}, "webhooks": [hook]}
        answer = client.send({"method": "POST", "path": _CONFIGURATIONS.format(sort), "body": body}, [])
        assert answer["status"] == 201, answer


def _remove(client: Client, name: str) -> None:
    for sort in ("mutating", "validating"):
        client.send({"method": "DELETE", "path": f"{_CONFIGURATIONS.format(sort)}/webhook-servers-{name}"}, [])


def compare(name: str, sources: Path, built: Path, clients: tuple[Client, Client], seed: int) -> Differences:
    program, differences, namespace = PROGRAMS[name], Differences(), f"{name}-{seed}"
    with ExitStack() as stack:
        for client in clients:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            url, bundle = stack.enter_context(running(built, folder, client))
            stack.callback(_remove, client, name)
            _install(client, name, program, sources, namespace, url, bundle)
        time.sleep(_SETTLING)
        for number, request in enumerate(_REQUESTS[name](namespace)):
            expected, got = (client.send(copy.deepcopy(request), []) for client in clients)
            differences.compare(f"{name} {number}", request, expected, got)
    return differences


def main() -> int:
    parser = comparing(__doc__)
    parser.add_argument("--sources", type=Path, default=Path(tempfile.gettempdir()) / "conformance-sources")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*PROGRAMS, []])
    arguments = parser.parse_args()
    if not has_go("webhook_servers"):
        return 1
    arguments.sources.mkdir(parents=True, exist_ok=True)
    clients = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    for name in arguments.names or PROGRAMS:
        try:
            sources, built = PROGRAMS[name].build(arguments.sources)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name}: skipped, it can't be built: {error}")
            continue
        print(f"{name}: {compare(name, sources, built, clients, arguments.seed)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
