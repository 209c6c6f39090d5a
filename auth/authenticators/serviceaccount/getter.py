"""Lookups of service accounts and the objects that tokens are bound to.

Upstream: pkg/controller/serviceaccount/tokengetter.go, k8s.io/client-go/rest/request.go.
"""

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.meta import FrozenObject
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.auth.interfaces import RefusedError


def find(objects: ObjectReader, resource: str, namespace: str, name: str) -> FrozenObject | None:
    """Returns the object, or None, also for impossible names."""
    impossible = not name or names.path_segment_name(name, False) or names.path_segment_name(namespace, False)
    return None if impossible else objects.get(resource, namespace, name)


def service_account(objects: ObjectReader, namespace: str, name: str) -> FrozenObject:
    """RefusedError in the words that client-go has for what can't be asked for."""
    if not name:
        raise RefusedError("resource name may not be empty")
    if problems := names.path_segment_name(name, False):
        raise RefusedError(f"invalid resource name {go_quote(name)}: [{' '.join(problems)}]")
    if not namespace:
        raise RefusedError("the server could not find the requested resource")
    if problems := names.path_segment_name(namespace, False):
        raise RefusedError(f"invalid namespace {go_quote(namespace)}: [{' '.join(problems)}]")
    account = objects.get("serviceaccounts", namespace, name)
    if account is None:
        raise RefusedError(f"serviceaccounts {go_quote(name)} not found")
    return account
