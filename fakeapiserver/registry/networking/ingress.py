"""Ingresses.

Upstream: pkg/registry/networking/ingress/strategy.go, pkg/apis/networking/validation/validation.go.
"""

from collections.abc import Iterator
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.ip_addresses import canonical_ip
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import ip_errors, is_valid_port_name, name_errors, port_errors
from fakeapiserver.registry.core.service.warnings import load_balancer_warnings
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import NONE, age
from fakeapiserver.registry.networking.ingressclass import reference_errors

_SPEC: Final = Path("spec")
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_PARTS: Final = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS: Final = ("/..", "/.")
_SHOWN_HOSTS: Final = 3
_CLASS: Final = "kubernetes.io/ingress.class"
_RELAXED: Final = "RelaxedServiceNameValidation"


class IngressStrategy(Strategy, kw_only=True):
    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}

    def warnings_on_create(self, obj: Object) -> list[str]:
        old_class = _CLASS in (metadata(obj).get("annotations") or {})
        if not old_class or "ingressClassName" in obj["spec"]:
            return []
        return [f"annotation \"{_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]

    def warnings_on_status_update(self, obj: Object, old: Object) -> list[str]:
        return load_balancer_warnings(obj)

    def validate(self, obj: Object) -> ErrorList:
        errors = _spec_errors(obj["spec"], None, self.features.enabled(_RELAXED))
        named, spec = (metadata(obj).get("annotations") or {}).get(_CLASS), obj["spec"]
        if named is not None and spec.get("ingressClassName", named) != named:
            detail = "must match `ingressClassName` when both are specified"
            errors.append(field.invalid(Path("annotations").child(_CLASS), named, detail))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        return _spec_errors(obj["spec"], old["spec"], self.features.enabled(_RELAXED))

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        known = {point.get("ip", "") for point in _points(old)}
        errors: ErrorList = []
        for i, point in enumerate(_points(obj)):
            path = Path("status").child("loadBalancer", "ingress").index(i)
            if ip := point.get("ip"):
                errors += ip_errors(ip, path.child("ip"), known)
            if host := point.get("hostname"):
                errors += name_errors(host, names.is_dns1123_subdomain, path.child("hostname"))
                errors += _no_address_errors(host, path.child("hostname"))
        return errors

    def table_row(self, obj: Object, now: float) -> Cells:
        spec = obj.get("spec") or {}
        return [
            metadata(obj).get("name", ""),
            spec.get("ingressClassName", NONE),
            _hosts(spec.get("rules") or []),
            _addresses(obj),
            "80, 443" if spec.get("tls") else "80",
            age(obj, now),
        ]


def _hosts(rules: list[Object]) -> str:
    hosts: list[str] = []
    more = False
    for rule in rules:
        more = more or len(hosts) == _SHOWN_HOSTS
        if not more and rule.get("host"):
            hosts.append(rule["host"])
    if not hosts:
        return "*"
    return ",".join(hosts) + (f" + {len(rules) - _SHOWN_HOSTS} more..." if more else "")


def _addresses(obj: Object) -> str:
    return ",".join(sorted({str(point.get("ip") or point.get("hostname") or "") for point in _points(obj)} - {""}))


def _points(obj: Object) -> list[Object]:
    """The addresses of load balancers in the status."""
    return ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def _no_address_errors(host: str, path: Path) -> ErrorList:
    return [field.invalid(path, host, "must be a DNS name, not an IP address")] if canonical_ip(host) else []


def _host_errors(host: str, path: Path) -> ErrorList:
    rule = names.is_wildcard_dns1123_subdomain if "*" in host else names.is_dns1123_subdomain
    return name_errors(host, rule, path)


def _secret_errors(tls: Object, path: Path) -> ErrorList:
    name = tls.get("secretName")
    return name_errors(name, names.is_dns1123_subdomain, path.child("secretName")) if name else []


def _spec_errors(spec: Object, old: Object | None, relaxed: bool) -> ErrorList:
    """The errors in a spec. `old`: the spec before an update, whose values stay allowed: invalid names of secrets, and anything
    after a wildcard host."""
    errors: ErrorList = []
    before = old or {}
    relaxed = relaxed or any(map(_is_relaxed, _services(before)))
    any_secret = any(_secret_errors(tls, _SPEC) for tls in before.get("tls") or ())
    any_rule = any("*" in rule.get("host", "") and _paths_errors(rule, _SPEC) for rule in before.get("rules") or ())
    rules, backend = spec.get("rules"), spec.get("defaultBackend")
    if not rules and backend is None:
        errors.append(field.invalid(_SPEC, rules, "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        errors += _backend_errors(backend, _SPEC.child("defaultBackend"), relaxed)
    for i, rule in enumerate(rules or ()):
        path = _SPEC.child("rules").index(i)
        if host := rule.get("host", ""):
            errors += _no_address_errors(host, path.child("host")) + _host_errors(host, path.child("host"))
        if not (any_rule and "*" in host):
            errors += _paths_errors(rule, path, relaxed)
    for i, tls in enumerate(spec.get("tls") or ()):
        path = _SPEC.child("tls").index(i)
        for j, host in enumerate(tls.get("hosts") or ()):
            errors += _host_errors(host, path.child("hosts").index(j))
        if not any_secret:
            errors += _secret_errors(tls, path)
    if "ingressClassName" in spec:
        errors += name_errors(spec["ingressClassName"], names.is_dns1123_subdomain, _SPEC.child("ingressClassName"))
    return errors


def _services(spec: Object) -> Iterator[str]:
    """The names of the Services behind an ingress."""
    rules = spec.get("rules") or ()
    backends = [spec.get("defaultBackend") or {}]
    backends += [path.get("backend") or {} for rule in rules for path in (rule.get("http") or {}).get("paths") or ()]
    for backend in backends:
        if (service := backend.get("service")) is not None:
            yield service.get("name", "")


def _is_relaxed(name: str) -> bool:
    return not names.is_dns1123_label(name) and bool(names.is_dns1035_label(name))


def _paths_errors(rule: Object, path: Path, relaxed: bool = True) -> ErrorList:
    if "http" not in rule:
        return []
    at = path.child("http", "paths")
    paths = rule["http"].get("paths") or ()
    errors: ErrorList = [] if paths else [field.required(at)]
    for i, item in enumerate(paths):
        errors += _path_errors(item, at.index(i), relaxed)
    return errors


def _path_errors(item: Object, at: Path, relaxed: bool) -> ErrorList:
    kind, path = item.get("pathType"), item.get("path", "")
    if kind is None:
        return [field.required(at.child("pathType"), "pathType must be specified")]
    errors: ErrorList = []
    if kind not in _PATH_TYPES:
        errors.append(field.not_supported(at.child("pathType"), kind, _PATH_TYPES))
    elif not path.startswith("/") and (path or kind != "ImplementationSpecific"):
        errors.append(field.invalid(at.child("path"), path, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        problems = [f"must not contain '{part}'" for part in _FORBIDDEN_PARTS if part in path]
        problems += [f"cannot end with '{end}'" for end in _FORBIDDEN_ENDS if path.endswith(end)]
        errors += [field.invalid(at.child("path"), path, detail) for detail in problems]
    return errors + _backend_errors(item.get("backend") or {}, at.child("backend"), relaxed)


def _backend_errors(backend: Object, path: Path, relaxed: bool = True) -> ErrorList:
    """The errors in a backend. `relaxed`: whether a Service may have any name that is a label (RelaxedServiceNameValidation)."""
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [field.invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return reference_errors(resource, path.child("resource"))
    if service is None:
        return [field.invalid(path, "", "resource or service backend is required")]
    at = path.child("service")
    if not service.get("name"):
        errors: ErrorList = [field.required(at.child("name"))]
    else:
        errors = name_errors(
            service["name"], names.is_dns1123_label if relaxed else names.is_dns1035_label, at.child("name")
        )
    return errors + _backend_port_errors(service.get("port") or {}, path)


def _backend_port_errors(port: Object, path: Path) -> ErrorList:
    name, number = port.get("name"), port.get("number")
    at = path.child("service", "port")
    if name and number:
        return [field.invalid(path, "", "cannot set both port name & port number")]
    if name:
        return name_errors(name, is_valid_port_name, at.child("name"))
    if number:
        return port_errors(number, at.child("number"))
    return [field.required(path, "port name or number is required")]
