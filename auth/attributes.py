"""The message of a 403: who may not do what, and where.

Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go.
"""

from fakeapiserver.apimachinery.errors import StatusError, new_forbidden
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.auth.interfaces import Attributes

# Upstream answers these three as HTML entities, even in JSON.
ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def forbidden_message(attributes: Attributes) -> str:
    """`User "jane" cannot list resource "pods" in API group "" in the namespace "default"`, and its other forms."""
    start = f"User {go_quote(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.resource_request:
        return f"{start} path {go_quote(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource += "/" + attributes.subresource
    where = f"in the namespace {go_quote(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"{start} resource {go_quote(resource)} in API group {go_quote(attributes.api_group)} {where}"


def forbidden_error(attributes: Attributes, reason: str = "") -> StatusError:
    """The 403 to raise when `attributes` are not allowed; `reason` is the authorizer's, appended when not empty."""
    message = forbidden_message(attributes).translate(ENTITIES)
    if reason:
        message = f"{message}: {reason}"
    error = new_forbidden(GroupResource(attributes.api_group, attributes.resource), attributes.name, message)
    error.headers = (("X-Content-Type-Options", "nosniff"),)
    return error
