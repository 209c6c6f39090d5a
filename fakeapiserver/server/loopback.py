"""Reads and writes a server's own objects, without requests (upstream: the loopback client)."""

from fakeapiserver.endpoints.object_getter import ObjectGetter
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.endpoints.served_versions import ServedVersions
from fakeapiserver.server.upkeep.loopback_writer import LoopbackWriter
from fakeapiserver.server.upkeep.secret_labels import SecretLabeller


class Loopback:
    """`objects` reads within the same turn of the event loop, `versions` converts, `writer` writes through the stores.

    `label_secret` sets labels of a secret.
    """

    def __init__(self, scopes: RequestScopes) -> None:
        self.scopes = scopes
        self.objects = ObjectGetter(scopes)
        self.versions = ServedVersions(scopes)
        self.writer = LoopbackWriter(scopes)
        self.label_secret = SecretLabeller(scopes).label
