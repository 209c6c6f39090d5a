"""Descriptions of operations and their parameters in OpenAPI documents.

The phrases of operations are composed as upstream composes them (k8s.io/apiserver/pkg/endpoints/installer.go,
k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder/builder.go). The sentences about parameters are this project's own.
"""

from collections.abc import Mapping
from typing import Final

_DEPRECATED: Final = "deprecated: use the 'watch' parameter with a list operation instead"
# What an operation does with an object, by its action; {of} names a subresource, {a} is the kind's article.
_ACTIONS: Final[Mapping[str, str]] = {
    "list": "list objects of kind {kind}",
    "list or watch": "list or watch objects of kind {kind}",
    "get": "read {of}the specified {kind}",
    "put": "replace {of}the specified {kind}",
    "patch": "partially update {of}the specified {kind}",
    "post": "create {of}{a}{kind}",
    "delete": "delete {of}{a}{kind}",
    "deletecollection": "delete collection of {kind}",
    "watch": "watch changes to an object of kind {kind}. "
    + _DEPRECATED
    + ", filtered to a single item with the 'fieldSelector' parameter.",
    "watchlist": "watch individual changes to a list of {kind}. " + _DEPRECATED + ".",
}
PARAMETERS: Final[Mapping[str, str]] = {
    "allowWatchBookmarks": "Allows the server to send BOOKMARK events, which carry only a resourceVersion to resume from. "
    "Ignored unless this is a watch.",
    "command": "The command to execute, one argument per parameter. No shell interprets it.",
    "container": "The container's name. May be omitted if the pod has only one container.",
    "continue": "The continue token of the previous page. All other parameters must be those of the first page. "
    "An expired token is refused with 410; then list from the start, or with the token in that error.",
    "dryRun": "`All` processes the request completely, but stores nothing. Other values are refused.",
    "fieldManager": "The name under which managedFields record who owns the fields of this write: at most 128 printable "
    "characters. Required for apply.",
    "fieldSelector": "Restricts the list to objects whose fields have these values. By default, everything matches.",
    "fieldValidation": "What happens to unknown and duplicate fields: `Ignore` drops them, `Warn` (the default) drops them and "
    "sends warnings, `Strict` refuses the request.",
    "follow": "Keeps the stream open and sends new lines as they are written. Defaults to false.",
    "force": "Takes over fields that other managers own, instead of a conflict. Allowed only for apply.",
    "gracePeriodSeconds": "Seconds until the object is removed: 0 removes it at once. Defaults to the kind's or object's own value.",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "Deletes an object that cannot be read from storage, without its finalizers "
    "and preconditions. Use it only for objects that are corrupt.",
    "insecureSkipTLSVerifyBackend": "Does not verify the kubelet's certificate before its logs are read. Defaults to false.",
    "labelSelector": "Restricts the list to objects whose labels match. By default, everything matches.",
    "limit": "The maximum number of objects in the answer. If there are more, metadata.continue has the token of the next page.",
    "limitBytes": "The maximum number of bytes of the log, after which it ends, even within a line.",
    "name": "name of the {kind}",
    "namespace": "The namespace of the objects.",
    "orphanDependents": "Deprecated in favour of propagationPolicy: true keeps the dependents of the deleted object.",
    "path": "The path of the request to the pod, service or node, with its query.",
    "ports": "The ports to forward; required over WebSockets.",
    "pretty": "`true` indents the answer. Defaults to false, except for browsers, curl and wget.",
    "previous": "Returns the log of the container's previous run. Defaults to false.",
    "propagationPolicy": "What happens to dependents: `Orphan` keeps them, `Background` deletes them afterwards, `Foreground` deletes them "
    "before the object. May not be combined with orphanDependents.",
    "resourceVersion": "Which state is read, or where a watch starts. By default, the newest state.",
    "resourceVersionMatch": "How a list applies resourceVersion: `Exact` or `NotOlderThan`.",
    "sendInitialEvents": "Begins a watch with ADDED events for all existing objects and a bookmark that marks their end. Requires "
    "resourceVersionMatch=NotOlderThan.",
    "shardSelector": "Restricts the list to ranges of hashed identifiers: shardRange(object.metadata.uid, '0x0', '0x8'), joined by ||.",
    "sinceSeconds": "Returns only lines of the last so many seconds. May not be combined with sinceTime.",
    "sinceTime": "Returns only lines since this time (RFC 3339). May not be combined with sinceSeconds.",
    "stderr": "Whether the standard error stream is sent.",
    "stdin": "Whether the standard input stream is received. Defaults to false.",
    "stdout": "Whether the standard output stream is sent.",
    "stream": "Which stream of the log is returned: `All` (the default), `Stdout` or `Stderr`. Only `All` goes with tailLines.",
    "tailLines": "Returns only the last lines of the log. By default, all of them.",
    "timeoutSeconds": "Seconds after which the list or watch ends, whatever happens meanwhile.",
    "timestamps": "Puts the time (RFC 3339) in front of each line. Defaults to false.",
    "tty": "Whether a terminal is allocated. Defaults to false.",
    "watch": "Sends changes as they happen, from resourceVersion on, instead of a list.",
}
# The operations of paths that belong to no resource, by the end of their ids.
_FIXED: Final[Mapping[str, str]] = {
    "APIVersions": "get available API versions",
    "APIGroup": "get information of a group",
    "APIResources": "get available resources",
    "getServiceAccountIssuerOpenIDConfiguration": "get service account issuer OpenID configuration, "
    "also known as the 'OIDC discovery doc'",
    "getServiceAccountIssuerOpenIDKeyset": "get service account issuer OpenID JSON Web Key Set "
    "(contains public token verification keys)",
    "getCodeVersion": "get the version information for this server",
}


def fixed(operation_id: str) -> str:
    """Describes the operation of a path that belongs to no resource."""
    return next((text for end, text in _FIXED.items() if operation_id.endswith(end)), "")


def operation(action: str, kind: str, subresource: str = "") -> str:
    """Describes an operation of a resource, or of its subresource."""
    of = f"{subresource} of " if subresource else ""
    return _ACTIONS[action].format(kind=kind, of=of, a=_article(kind))


def connect(method: str, subresource: str, kind: str) -> str:
    """Describes a connection to a subresource."""
    return f"connect {method.upper()} requests to {subresource} of {kind}"


def parameter(name: str, kind: str) -> str:
    """Describes a parameter; "" if nothing is known about it."""
    return PARAMETERS.get(name, "").format(kind=kind)


def _article(kind: str) -> str:
    """The article with a space; nothing for a plural (upstream: GetArticleForNoun)."""
    if kind.endswith("s") and not kind.endswith("ss"):
        return ""
    return "an " if kind[0] in "AEIOU" else "a "
