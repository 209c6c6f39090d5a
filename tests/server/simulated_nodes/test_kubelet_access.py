"""The rights that a request to a kubelet needs."""

import pytest

from fakeapiserver.auth.interfaces import UserInfo
from fakeapiserver.server.simulated_nodes.kubelet_access import node_attributes

# Method, path, verb, and the subresources of `nodes` of which one is enough.
CASES = [
    ("GET", "/pods", "get", "pods proxy"),
    ("GET", "/pods/", "get", "pods proxy"),
    ("GET", "/runningpods/", "get", "pods proxy"),
    ("GET", "/healthz", "get", "healthz proxy"),
    ("GET", "/healthz/ping", "get", "healthz proxy"),
    ("GET", "/healthzx", "get", "proxy"),
    ("GET", "/configz", "get", "configz proxy"),
    ("GET", "/statusz", "get", "statusz proxy"),
    ("GET", "/stats/summary", "get", "stats"),
    ("GET", "/metrics", "get", "metrics"),
    ("GET", "/metrics/resource", "get", "metrics"),
    ("GET", "/logs/", "get", "log"),
    ("POST", "/checkpoint/ns/pod/c", "create", "checkpoint"),
    ("GET", "/containerLogs/ns/pod/c", "get", "proxy"),
    ("POST", "/exec/ns/pod/c", "create", "proxy"),
    ("PUT", "/exec/ns/pod/c", "update", "proxy"),
    ("PATCH", "/", "patch", "proxy"),
    ("DELETE", "", "delete", "proxy"),
    ("TRACE", "//metrics", "", "proxy"),
]


@pytest.mark.parametrize(("method", "path", "verb", "subresources"), CASES)
def test_attributes(method: str, path: str, verb: str, subresources: str) -> None:
    wanted = node_attributes(UserInfo("jane"), method, path, "node-1")
    assert " ".join(attributes.subresource for attributes in wanted) == subresources
    for attributes in wanted:
        assert (attributes.verb, attributes.resource, attributes.name) == (verb, "nodes", "node-1")
        assert (attributes.api_group, attributes.api_version, attributes.namespace) == ("", "v1", "")
