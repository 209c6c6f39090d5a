"""The Leases of nodes."""

from fakeapiserver.client.dynamic import DynamicClient
from fakeapiserver.client.errors import StatusError, is_not_found
from fakeapiserver.component_helpers.objects import LEASES
from fakeapiserver.nodes import node


async def renew(client: DynamicClient, name: str, uid: str, now: float) -> None:
    """The node's lease, which is made when it is missing. StatusError, TransportError, TimeoutError."""
    leases = client.resource(LEASES, node.LEASE_NAMESPACE)
    lease = node.lease(name, uid, now)
    try:
        await leases.patch(name, {"spec": {"renewTime": lease["spec"]["renewTime"]}})
    except StatusError as error:
        if not is_not_found(error):
            raise
        await leases.create(lease)
