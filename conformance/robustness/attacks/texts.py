"""Attacks with one long text in each kind of field that is parsed."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Final

from conformance.robustness.attacks.attack import BODY, Attack, Object, named, posted
from conformance.robustness.attacks.pods import PODS, pod

_CORE: Final = "/api/v1/namespaces/default"
_JOB: Final = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
_PEM: Final = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
_SIZE: Final = BODY // 2


def _cron(**spec: object) -> Object:
    return named("batch/v1", "CronJob", "texts", spec={"schedule": "0 * * * *", "jobTemplate": _JOB, **spec})


def _service(**spec: object) -> Object:
    return named("v1", "Service", "texts", spec={"ports": [{"port": 80}], **spec})


def _webhooks(**config: object) -> Object:
    webhook = {
        "name": "a.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": config,
    }
    return named("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "texts", webhooks=[webhook])


def _request(request: bytes) -> Object:
    spec = {"request": b64encode(request).decode(), "signerName": "example.com/a", "usages": ["client auth"]}
    return named("certificates.k8s.io/v1", "CertificateSigningRequest", "texts", spec=spec)


def _device_class(expression: str) -> Object:
    return named(
        "resource.k8s.io/v1", "DeviceClass", "texts", spec={"selectors": [{"cel": {"expression": expression}}]}
    )


def _repeated(text: str, before: str = "", after: str = "") -> str:
    return before + text * (_SIZE // len(text)) + after


_CRONS: Final = "/apis/batch/v1/namespaces/default/cronjobs"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_REQUESTS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_CLASSES: Final = "/apis/resource.k8s.io/v1/deviceclasses"
_TEXTS: Final[dict[str, tuple[str, Callable[[], Object]]]] = {
    "a time zone": (_CRONS, lambda: _cron(timeZone=_repeated("America/"))),
    "a time zone of parents": (_CRONS, lambda: _cron(timeZone=_repeated("../"))),
    "a schedule with a time zone": (_CRONS, lambda: _cron(schedule=_repeated("A", "TZ=") + " * * * * *")),
    "a schedule of ranges": (_CRONS, lambda: _cron(schedule=_repeated("0-59,", "", "1 * * * *"))),
    "a schedule of stars": (_CRONS, lambda: _cron(schedule=_repeated("* "))),
    "a schedule with a long step": (_CRONS, lambda: _cron(schedule="*/" + "9" * _SIZE + " * * * *")),
    "a schedule of an interval": (_CRONS, lambda: _cron(schedule="@every " + _repeated("1h"))),
    "an address of colons": (f"{_CORE}/services", lambda: _service(externalIPs=[_repeated(":")])),
    "an address of digits": (f"{_CORE}/services", lambda: _service(externalIPs=["1" * _SIZE + ".1.1.1"])),
    "an address of dots": (f"{_CORE}/services", lambda: _service(externalIPs=[_repeated("1.")])),
    "a range with a long prefix": (
        f"{_CORE}/services",
        lambda: _service(type="LoadBalancer", loadBalancerSourceRanges=["10.0.0.0/" + "0" * _SIZE]),
    ),
    "a range of slashes": (
        f"{_CORE}/services",
        lambda: _service(type="LoadBalancer", loadBalancerSourceRanges=[_repeated("1/")]),
    ),
    "an external name": (f"{_CORE}/services", lambda: _service(type="ExternalName", externalName=_repeated("a."))),
    "an external name of hyphens": (
        f"{_CORE}/services",
        lambda: _service(type="ExternalName", externalName=_repeated("a-", "", "-")),
    ),
    "an image": (PODS, lambda: pod("texts", {"image": _repeated("a/")})),
    "an image of colons": (PODS, lambda: pod("texts", {"image": _repeated(":")})),
    "an image with a long digest": (PODS, lambda: pod("texts", {"image": "a@sha256:" + "0" * _SIZE})),
    "a path of parents": (
        PODS,
        lambda: pod("texts", {"volumeMounts": [{"name": "v", "mountPath": "/m", "subPath": _repeated("../")}]}),
    ),
    "an expansion": (PODS, lambda: pod("texts", {"args": [_repeated("$(A)")], "env": [{"name": "A", "value": "b"}]})),
    "an expansion of brackets": (PODS, lambda: pod("texts", {"args": [_repeated("$(")]})),
    "an expansion of dollars": (PODS, lambda: pod("texts", {"env": [{"name": "A", "value": _repeated("$")}]})),
    "a host name": (PODS, lambda: pod("texts", hostname=_repeated("a-"))),
    "a search domain": (PODS, lambda: pod("texts", dnsConfig={"searches": [_repeated("a.")]})),
    "a field path": (
        PODS,
        lambda: pod(
            "texts",
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": _repeated("a[", "metadata.labels['")}}}]},
        ),
    ),
    "a start time": (PODS, lambda: {**pod("texts"), "status": {"startTime": _repeated("2026-01-01T00:00:00Z")}}),
    "a creation time of digits": (
        PODS,
        lambda: {
            **pod("texts"),
            "metadata": {"name": "texts", "creationTimestamp": "2026-01-01T00:00:00." + "0" * _SIZE + "Z"},
        },
    ),
    "a profile in an annotation": (
        PODS,
        lambda: {
            **pod("texts"),
            "metadata": {
                "name": "texts",
                "annotations": {"container.apparmor.security.beta.kubernetes.io/c": "localhost/" + "a" * 200_000},
            },
        },
    ),
    "a URL": (_WEBHOOKS, lambda: _webhooks(url="https://example.com/" + _repeated("%41"))),
    "a URL with a long host": (_WEBHOOKS, lambda: _webhooks(url="https://" + _repeated("a.") + "/")),
    "a URL of brackets": (_WEBHOOKS, lambda: _webhooks(url="https://" + "[" * _SIZE)),
    "a URL with a long port": (_WEBHOOKS, lambda: _webhooks(url="https://a:" + "1" * _SIZE)),
    "authorities": (
        _WEBHOOKS,
        lambda: _webhooks(url="https://a/", caBundle=b64encode(_PEM.encode() * (_SIZE // len(_PEM))).decode()),
    ),
    "an authority without an end": (
        _WEBHOOKS,
        lambda: _webhooks(
            url="https://a/", caBundle=b64encode(b"-----BEGIN CERTIFICATE-----\n" + b"A" * _SIZE).decode()
        ),
    ),
    "beginnings of authorities": (
        _WEBHOOKS,
        lambda: _webhooks(url="https://a/", caBundle=b64encode(b"-----BEGIN A-----\n" * (_SIZE // 18)).decode()),
    ),
    "a certificate request of noise": (
        _REQUESTS,
        lambda: _request(
            b"-----BEGIN CERTIFICATE REQUEST-----\n" + b"MIIB" * (_SIZE // 4) + b"\n-----END CERTIFICATE REQUEST-----\n"
        ),
    ),
    "a certificate request of sequences": (
        _REQUESTS,
        lambda: _request(
            b"-----BEGIN CERTIFICATE REQUEST-----\n"
            + b64encode(b"0\x80" * (_SIZE // 4))
            + b"\n-----END CERTIFICATE REQUEST-----\n"
        ),
    ),
    "an expression of minus signs": (_CLASSES, lambda: _device_class("-" * 9_000 + "1 == 1")),
    "an expression of brackets": (_CLASSES, lambda: _device_class("[" * 4_000 + "]" * 4_000 + " == []")),
    "an expression of questions": (_CLASSES, lambda: _device_class("true ? true : " * 600 + "true")),
    "an expression of macros": (_CLASSES, lambda: _device_class("[1].all(a, " * 300 + "true" + ")" * 300)),
    "an expression with a pattern": (_CLASSES, lambda: _device_class("'a'.matches('" + "(a|b)*" * 1_500 + "')")),
    "an expression with a long number": (_CLASSES, lambda: _device_class("1" * 9_000 + " > 1")),
    "an expression with escapes": (_CLASSES, lambda: _device_class("'" + r"\u0041" * 1_600 + "' == ''")),
}


def attacks() -> Iterator[Attack]:
    for name, (path, obj) in _TEXTS.items():
        yield Attack(f"text: {name}", posted(f"{path}?dryRun=All", obj))
