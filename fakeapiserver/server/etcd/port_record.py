"""The record of allocated node ports in etcd, which all API servers on it share, real ones included.

Upstream: pkg/registry/core/service/allocator/{bitmap.go,storage/storage.go}.
"""

import base64
from typing import Final

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import json, protobuf
from fakeapiserver.apis import protobuf as protobuf_messages
from fakeapiserver.registry.core.service.port_record import Recorded
from fakeapiserver.server.etcd.values import ServerValues
from fakeapiserver.storage.encryption.transformers import TransformError
from fakeapiserver.storage.etcd.client import Client
from fakeapiserver.storage.etcd.errors import Refused
from fakeapiserver.storage.etcd.messages import EQUAL, MOD, Compare, PutRequest, RangeRequest, RequestOp, TxnRequest
from fakeapiserver.storage.interface import Unreadable
from fakeapiserver.storage.keys import ROOT, below, rooted

_KEY: Final = f"{ROOT}/ranges/servicenodeports"
_KIND: Final = "RangeAllocation"
_MESSAGE: Final = f"k8s.io.api.core.v1.{_KIND}"
# By which an EncryptionConfiguration names it.
_RESOURCE: Final = GroupResource("", "servicenodeportallocations")


class EtcdPortRecord:
    """Implements registry.core.service.port_record.PortRecord. All methods raise EtcdError, `read` also Unreadable."""

    def __init__(self, client: Client, values: ServerValues, prefix: str) -> None:
        self._client = client
        self._values = values
        self._key = below(rooted(prefix), _KEY).encode()

    async def read(self) -> Recorded:
        response = await self._client.range(RangeRequest(self._key))
        if not response.kvs:
            return Recorded()
        (kv,) = response.kvs
        try:
            record = self._decode(self._values.encryption.of(_RESOURCE).read(kv.value, self._key).value)
        except TransformError as error:
            raise Unreadable(self._key.decode(), str(error), 0.0) from None
        except ValueError as error:
            raise Refused(f"the record of node ports at {self._key.decode()} in etcd is damaged: {error}") from None
        bits = int.from_bytes(base64.b64decode(record.get("data") or ""), "big")
        return Recorded(bits, kv.mod_revision, record.get("range", ""))

    async def replace(self, before: Recorded, bits: int, port_range: str) -> bool:
        data = bits.to_bytes((bits.bit_length() + 7) // 8, "big")
        record = {"metadata": {}, "range": port_range, "data": base64.b64encode(data).decode()}
        value = self._values.encryption.of(_RESOURCE).write(self._encode(record), self._key)
        response = await self._client.txn(
            TxnRequest(
                (Compare(EQUAL, MOD, self._key, mod_revision=before.revision),),
                (RequestOp(request_put=PutRequest(self._key, value)),),
            )
        )
        return response.succeeded

    def _encode(self, record: Object) -> bytes:
        if not self._values.writes_protobuf:
            return json.encode({"kind": _KIND, "apiVersion": "v1", **record}) + b"\n"
        encode = protobuf_messages.encoder(self._values.version).message(_MESSAGE)
        return protobuf.envelope("v1", _KIND, (encode(record),))

    def _decode(self, data: bytes) -> Object:
        if not data.startswith(protobuf.MAGIC):
            document: Object = json.decode(data)
            return document
        _, _, raw = protobuf.unwrap(data)
        record: Object = protobuf_messages.decoder(self._values.version).message(_MESSAGE)(raw)
        return record
