"""Tests impersonation. What a client sees is in conformance/exchanges/auth; these tests show which questions the authorizer is asked, which
only a service account's own credentials or many names reveal.
"""

import asyncio
from typing import Any

import pytest

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.auth.interfaces import Attributes, Decision, UserInfo
from fakeapiserver.endpoints.request import Request
from fakeapiserver.server.filters.impersonation import Impersonation

AGENT = UserInfo(
    "system:serviceaccount:kube-system:agent",
    groups=("system:serviceaccounts",),
    extra={"authentication.kubernetes.io/node-name": ("n1",), "authentication.kubernetes.io/pod-name": ("p",)},
)
JANE = UserInfo("jane")


class Asked:
    """An authorizer that allows what starts with one of some words, and keeps what it was asked."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.questions: list[str] = []

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        resource = "/".join(filter(None, (attributes.resource, attributes.subresource)))
        question = f"{attributes.verb} {resource} {attributes.name}".strip()
        self.questions.append(question)
        return (Decision.ALLOW if question.startswith(self.allowed) else Decision.NO_OPINION), ""


async def no_body() -> dict[str, Any]:
    raise AssertionError("the body is not read")


def impersonate(
    authorizer: Asked, user: UserInfo, *headers: tuple[str, str], by: Impersonation | None = None
) -> UserInfo:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    request = Request("GET", "/api/v1/pods", {}, raw, no_body, {}, user=user)
    own = Attributes(user, "list", resource_request=True, resource="pods")
    return asyncio.run((by or Impersonation(authorizer, Instruments())).user(request, own))


def test_a_service_account_on_a_node_may_be_that_node() -> None:
    authorizer = Asked("impersonate-on:associated-node:list", "impersonate:associated-node")
    user = impersonate(authorizer, AGENT, ("Impersonate-User", "system:node:n1"))
    assert (user.name, user.groups) == ("system:node:n1", ("system:nodes", "system:authenticated"))
    assert authorizer.questions == ["impersonate-on:associated-node:list pods", "impersonate:associated-node nodes *"]


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([("Impersonate-User", "system:node:n2")], id="another node"),
        pytest.param([("Impersonate-User", "system:node:n1"), ("Impersonate-Group", "g")], id="with a group"),
    ],
)
def test_and_no_other(headers: list[tuple[str, str]]) -> None:
    authorizer = Asked("impersonate-on:associated-node:list", "impersonate:associated-node")
    with pytest.raises(StatusError, match="cannot impersonate"):
        impersonate(authorizer, AGENT, *headers)


def test_many_groups_are_asked_for_at_once() -> None:
    authorizer = Asked("impersonate-on:user-info:list", "impersonate:user-info")
    groups = [("Impersonate-Group", f"g{number}") for number in range(4)]
    user = impersonate(authorizer, JANE, ("Impersonate-User", "bob"), *groups)
    assert user.groups == ("g0", "g1", "g2", "g3", "system:authenticated")
    assert authorizer.questions[-1] == "impersonate:user-info groups *"


def test_the_mode_that_let_a_user_through_is_tried_first_from_then_on() -> None:
    authorizer = Asked("impersonate users", "impersonate serviceaccounts")
    impersonation = Impersonation(authorizer, Instruments())
    impersonate(authorizer, JANE, ("Impersonate-User", "bob"), by=impersonation)
    assert authorizer.questions[0] == "impersonate-on:user-info:list pods"
    authorizer.questions.clear()
    impersonate(authorizer, JANE, ("Impersonate-User", "system:serviceaccount:a:b"), by=impersonation)
    assert authorizer.questions == ["impersonate serviceaccounts b"]


def test_without_constraints_there_is_one_verb() -> None:
    authorizer = Asked("impersonate ")
    impersonation = Impersonation(authorizer, Instruments(), constrained=False)
    headers = [("Impersonate-Uid", "5"), ("Impersonate-Group", "system:masters"), ("Impersonate-Extra-a", "x")]
    user = impersonate(authorizer, JANE, ("Impersonate-User", "system:node:n1"), *headers, by=impersonation)
    assert user == UserInfo("system:node:n1", "5", ("system:masters", "system:authenticated"), {"a": ("x",)})
    asked = ["users system:node:n1", "groups system:masters", "userextras/a x", "uids 5"]
    assert authorizer.questions == [f"impersonate {question}" for question in asked]


def test_without_constraints_a_missing_name_is_printed_in_references() -> None:
    impersonation = Impersonation(Asked(), Instruments(), constrained=False)
    headers = [("Impersonate-Group", "a"), ("Impersonate-Uid", "5"), ("Impersonate-Extra-k", "x")]
    with pytest.raises(StatusError) as refused:
        impersonate(Asked(), JANE, *headers, by=impersonation)
    version = "authentication.k8s.io/v1"
    asked = f"{{Group  a    }} {{UserExtra  x  {version}  k}} {{UID  5  {version}  }}"
    assert refused.value.status["message"] == f"requested [{asked}] without impersonating a user"


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (("Impersonate-Group", ""), "impersonating the empty string group is not allowed"),
        (("Impersonate-Group", "system:masters"), "impersonating the system:masters group is not allowed"),
        (("Impersonate-Extra-", "v"), "impersonating the empty string key in extra is not allowed"),
        (("Impersonate-Extra-a.b%2Fc", ""), "impersonating the empty string value in extra is not allowed"),
        (("Impersonate-Extra-a_b%2Fc", "v"), "impersonating an invalid key in extra is not allowed: extra.key"),
        (("Impersonate-Extra-a.b%2F%5B", "v"), "Invalid path (regex used for validation is"),
    ],
)
def test_constrained_modes_refuse(header: tuple[str, str], problem: str) -> None:
    authorizer = Asked("impersonate-on:", "impersonate:")
    with pytest.raises(StatusError) as refused:
        impersonate(authorizer, JANE, ("Impersonate-User", "bob"), header)
    assert problem in refused.value.status["message"]
