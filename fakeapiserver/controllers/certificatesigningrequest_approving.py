"""Kubelets' requests for client certificates are approved, if their users may have them.

Upstream: pkg/controller/certificates/approver/sarapprove.go.
"""

from collections.abc import Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.component_helpers.certificate_requests import (
    common_name,
    conditions_of,
    controller_of_requests,
    is_decided,
    kubelet_client_problem,
    parse,
)
from fakeapiserver.component_helpers.cluster_signing import KUBELET_CLIENT
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import CERTIFICATE_SIGNING_REQUESTS, SUBJECT_ACCESS_REVIEWS
from fakeapiserver.controller_runtime.controller import Controller

# The right that is asked for, and what is said when it is there: a node's own certificate, any node's.
_SELF: Final = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
_ANY: Final = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


class NotApproved(Exception):
    """The user has no right to it yet."""


class Approver:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client

    async def handle(self, request: Object) -> None:
        """NotApproved, so that it is tried again: rights may come later."""
        if is_decided(request):
            return
        parsed, spec = parse(request), request["spec"]
        if spec["signerName"] != KUBELET_CLIENT or kubelet_client_problem(parsed, spec.get("usages") or ()):
            return
        tried = []
        for subresource, message in (_SELF, _ANY):
            if subresource == _SELF[0] and spec.get("username", "") != common_name(parsed):
                continue
            tried.append(subresource)
            if await self._may(spec, subresource):
                await self._approve(request, message)
                return
        raise NotApproved(
            f'recognized csr "{request["metadata"]["name"]}" as [{" ".join(tried)}] '
            "but subject access review was not approved"
        )

    async def _may(self, spec: Object, subresource: str) -> bool:
        attributes = {
            "group": "certificates.k8s.io",
            "resource": "certificatesigningrequests",
            "verb": "create",
            "subresource": subresource,
            "version": "*",
        }
        who = {"user": spec.get("username"), "uid": spec.get("uid"), "groups": spec.get("groups")}
        review: Object = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {
                **{name: value for name, value in who.items() if value},
                "extra": spec.get("extra") or {},
                "resourceAttributes": attributes,
            },
        }
        answer = await self._client.resource(SUBJECT_ACCESS_REVIEWS).create(review)
        return bool(answer.get("status", {}).get("allowed"))

    async def _approve(self, request: Object, message: str) -> None:
        condition = {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": message}
        request["status"]["conditions"] = [*conditions_of(request), condition]
        await self._client.resource(CERTIFICATE_SIGNING_REQUESTS).update(request, "approval")


def new(context: ControllerContext) -> Sequence[Controller]:
    return [controller_of_requests(context, Approver(context).handle)]
