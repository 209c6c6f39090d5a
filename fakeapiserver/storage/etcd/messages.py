"""The messages of etcd's version 3 API that an API server needs.

Upstream: etcd's api/etcdserverpb/rpc.proto and api/mvccpb/kv.proto.
"""

from typing import Annotated, Final

from fakeapiserver.storage.etcd.codec import Message

# Results and targets of Compare.
EQUAL: Final = 0
GREATER: Final = 1
VERSION: Final = 0
MOD: Final = 2
# Types of Event.
PUT: Final = 0
DELETE: Final = 1


class KeyValue(Message, frozen=True):
    """A state of a key. `version` counts the writes since its creation."""

    key: Annotated[bytes, 1] = b""
    create_revision: Annotated[int, 2] = 0
    mod_revision: Annotated[int, 3] = 0
    version: Annotated[int, 4] = 0
    value: Annotated[bytes, 5] = b""
    lease: Annotated[int, 6] = 0


class Event(Message, frozen=True):
    """A change of a key. The KeyValue of a deletion has only the key and the revision of the deletion."""

    type: Annotated[int, 1] = PUT
    kv: Annotated[KeyValue, 2] = KeyValue()
    prev_kv: Annotated[KeyValue | None, 3] = None


class ResponseHeader(Message, frozen=True):
    """The state of etcd when it responded. The identifiers of the cluster and of the member aren't read."""

    revision: Annotated[int, 3] = 0
    raft_term: Annotated[int, 4] = 0


_NO_HEADER: Final = ResponseHeader()


class RangeRequest(Message, frozen=True):
    """Reads the keys from `key` to `range_end`, or one key if that is empty; at `revision` (0: now)."""

    key: Annotated[bytes, 1] = b""
    range_end: Annotated[bytes, 2] = b""
    limit: Annotated[int, 3] = 0
    revision: Annotated[int, 4] = 0
    serializable: Annotated[bool, 7] = False
    keys_only: Annotated[bool, 8] = False
    count_only: Annotated[bool, 9] = False


class RangeResponse(Message, frozen=True):
    """`count` is the number of keys in the range, whatever the limit was."""

    header: Annotated[ResponseHeader, 1] = _NO_HEADER
    kvs: Annotated[tuple[KeyValue, ...], 2] = ()
    more: Annotated[bool, 3] = False
    count: Annotated[int, 4] = 0


class PutRequest(Message, frozen=True):
    key: Annotated[bytes, 1] = b""
    value: Annotated[bytes, 2] = b""
    lease: Annotated[int, 3] = 0
    prev_kv: Annotated[bool, 4] = False
    ignore_value: Annotated[bool, 5] = False
    ignore_lease: Annotated[bool, 6] = False


class PutResponse(Message, frozen=True):
    header: Annotated[ResponseHeader, 1] = _NO_HEADER
    prev_kv: Annotated[KeyValue | None, 2] = None


class DeleteRangeRequest(Message, frozen=True):
    key: Annotated[bytes, 1] = b""
    range_end: Annotated[bytes, 2] = b""
    prev_kv: Annotated[bool, 3] = False


class DeleteRangeResponse(Message, frozen=True):
    header: Annotated[ResponseHeader, 1] = _NO_HEADER
    deleted: Annotated[int, 2] = 0
    prev_kvs: Annotated[tuple[KeyValue, ...], 3] = ()


class RequestOp(Message, frozen=True):
    """An operation of a transaction: exactly one is set."""

    request_range: Annotated[RangeRequest | None, 1] = None
    request_put: Annotated[PutRequest | None, 2] = None
    request_delete_range: Annotated[DeleteRangeRequest | None, 3] = None


class ResponseOp(Message, frozen=True):
    """The response to the operation at the same place."""

    response_range: Annotated[RangeResponse | None, 1] = None
    response_put: Annotated[PutResponse | None, 2] = None
    response_delete_range: Annotated[DeleteRangeResponse | None, 3] = None


class Compare(Message, frozen=True):
    """A condition of a transaction. The mod_revision and the version of a key that doesn't exist are 0."""

    result: Annotated[int, 1] = EQUAL
    target: Annotated[int, 2] = VERSION
    key: Annotated[bytes, 3] = b""
    version: Annotated[int | None, 4] = None
    create_revision: Annotated[int | None, 5] = None
    mod_revision: Annotated[int | None, 6] = None


class TxnRequest(Message, frozen=True):
    """Does `success` if all conditions hold, else `failure`; at one revision."""

    compare: Annotated[tuple[Compare, ...], 1] = ()
    success: Annotated[tuple[RequestOp, ...], 2] = ()
    failure: Annotated[tuple[RequestOp, ...], 3] = ()


class TxnResponse(Message, frozen=True):
    header: Annotated[ResponseHeader, 1] = _NO_HEADER
    succeeded: Annotated[bool, 2] = False
    responses: Annotated[tuple[ResponseOp, ...], 3] = ()


class CompactionRequest(Message, frozen=True):
    revision: Annotated[int, 1] = 0
    physical: Annotated[bool, 2] = False


class CompactionResponse(Message, frozen=True):
    header: Annotated[ResponseHeader, 1] = _NO_HEADER


class WatchCreateRequest(Message, frozen=True):
    """Watches the keys from `key` to `range_end`, from `start_revision` on, which is included (0: from now on)."""

    key: Annotated[bytes, 1] = b""
    range_end: Annotated[bytes, 2] = b""
    start_revision: Annotated[int, 3] = 0
    progress_notify: Annotated[bool, 4] = False
    prev_kv: Annotated[bool, 6] = False
    watch_id: Annotated[int, 7] = 0
    fragment: Annotated[bool, 8] = False


class WatchCancelRequest(Message, frozen=True):
    watch_id: Annotated[int, 1] = 0


class WatchProgressRequest(Message, frozen=True):
    pass


class WatchRequest(Message, frozen=True):
    """Exactly one is set."""

    create_request: Annotated[WatchCreateRequest | None, 1] = None
    cancel_request: Annotated[WatchCancelRequest | None, 2] = None
    progress_request: Annotated[WatchProgressRequest | None, 3] = None


class WatchResponse(Message, frozen=True):
    """Events, or, without any, the notification that all events up to the header's revision have been sent.
    `fragment`: further events of the same revision follow in the next response."""

    header: Annotated[ResponseHeader, 1] = _NO_HEADER
    watch_id: Annotated[int, 2] = 0
    created: Annotated[bool, 3] = False
    canceled: Annotated[bool, 4] = False
    compact_revision: Annotated[int, 5] = 0
    cancel_reason: Annotated[str, 6] = ""
    fragment: Annotated[bool, 7] = False
    events: Annotated[tuple[Event, ...], 11] = ()


class LeaseGrantRequest(Message, frozen=True):
    ttl: Annotated[int, 1] = 0
    id: Annotated[int, 2] = 0


class LeaseGrantResponse(Message, frozen=True):
    header: Annotated[ResponseHeader, 1] = _NO_HEADER
    id: Annotated[int, 2] = 0
    ttl: Annotated[int, 3] = 0
    error: Annotated[str, 4] = ""


class LeaseRevokeRequest(Message, frozen=True):
    id: Annotated[int, 1] = 0


class LeaseRevokeResponse(Message, frozen=True):
    header: Annotated[ResponseHeader, 1] = _NO_HEADER


class LeaseKeepAliveRequest(Message, frozen=True):
    id: Annotated[int, 1] = 0


class LeaseKeepAliveResponse(Message, frozen=True):
    """`ttl` is 0 if the lease has expired."""

    header: Annotated[ResponseHeader, 1] = _NO_HEADER
    id: Annotated[int, 2] = 0
    ttl: Annotated[int, 3] = 0


class StatusRequest(Message, frozen=True):
    pass


class StatusResponse(Message, frozen=True):
    """A member's state. `leader` is 0 if the member knows none; `errors` names alarms."""

    header: Annotated[ResponseHeader, 1] = _NO_HEADER
    version: Annotated[str, 2] = ""
    db_size: Annotated[int, 3] = 0
    leader: Annotated[int, 4] = 0
    raft_index: Annotated[int, 5] = 0
    raft_term: Annotated[int, 6] = 0
    raft_applied_index: Annotated[int, 7] = 0
    errors: Annotated[tuple[str, ...], 8] = ()
    db_size_in_use: Annotated[int, 9] = 0
    is_learner: Annotated[bool, 10] = False


class MemberListRequest(Message, frozen=True):
    linearizable: Annotated[bool, 1] = False


class Member(Message, frozen=True):
    id: Annotated[int, 1] = 0
    name: Annotated[str, 2] = ""
    peer_urls: Annotated[tuple[str, ...], 3] = ()
    client_urls: Annotated[tuple[str, ...], 4] = ()
    is_learner: Annotated[bool, 5] = False


class MemberListResponse(Message, frozen=True):
    header: Annotated[ResponseHeader, 1] = _NO_HEADER
    members: Annotated[tuple[Member, ...], 2] = ()
