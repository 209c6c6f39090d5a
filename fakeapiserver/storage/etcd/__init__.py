"""etcd: its messages, a client for asyncio, and what can be wrong with a connection. Needs the extra `fakeapiserver[etcd]`."""
