"""Validation of a pod's DNS settings, host aliases and host names.

Upstream: pkg/apis/core/validation/validation.go (validatePodDNSConfig, ValidateHostAliases, validatePodHostName).
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.registry.core.field_formats import ip_errors, is_subdomain_with_underscore, name_errors

_MOST_SERVERS: Final = 3
_MOST_SEARCHES: Final = 32
_LONGEST_SEARCHES: Final = 2048
_LONGEST_HOST: Final = 64


def dns_config_errors(spec: Object, path: Path) -> ErrorList:
    config: Object | None = spec.get("dnsConfig")
    servers = (config or {}).get("nameservers") or []
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [field.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not servers:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [field.required(path.child("nameservers"), detail)]
    if config is None:
        return []
    errors: ErrorList = []
    if len(servers) > _MOST_SERVERS:
        detail = f"must not have more than {_MOST_SERVERS} nameservers"
        errors.append(field.invalid(path.child("nameservers"), servers, detail))
    for i, server in enumerate(servers):
        errors += ip_errors(server, path.child("nameservers").index(i))
    errors += _search_errors(config.get("searches") or [], path.child("searches"))
    return errors + [
        field.required(path.child("options").index(i), "must not be empty")
        for i, option in enumerate(config.get("options") or ())
        if not option.get("name")
    ]


def _search_errors(searches: Sequence[str], path: Path) -> ErrorList:
    errors: ErrorList = []
    if len(searches) > _MOST_SEARCHES:
        errors.append(field.invalid(path, searches, f"must not have more than {_MOST_SEARCHES} search paths"))
    if len(" ".join(searches).encode()) > _LONGEST_SEARCHES:
        detail = f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        errors.append(field.invalid(path, searches, detail))
    for i, search in enumerate(searches):
        if search != ".":
            errors += name_errors(search.removesuffix("."), is_subdomain_with_underscore, path.index(i))
    return errors


def host_alias_errors(aliases: Sequence[Object], path: Path) -> ErrorList:
    errors: ErrorList = []
    for i, alias in enumerate(aliases):
        at = path.index(i)
        errors += ip_errors(alias.get("ip", ""), at.child("ip"))
        for j, host in enumerate(alias.get("hostnames") or ()):
            errors += name_errors(host, names.is_dns1123_subdomain, at.child("hostnames").index(j))
    return errors


def hostname_override_errors(spec: Object, path: Path) -> ErrorList:
    if (name := spec.get("hostnameOverride")) is None:
        return []
    errors: ErrorList = [
        field.forbidden(path, f"may not be specified when {other} is true")
        for other in ("setHostnameAsFQDN", "hostNetwork")
        if spec.get(other)
    ]
    if len(name.encode()) > _LONGEST_HOST:
        errors.append(field.too_long(path, _LONGEST_HOST))
    return errors + name_errors(name, names.is_dns1123_subdomain, path)
