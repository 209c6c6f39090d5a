"""The fixtures with a real etcd."""

from tests.etcd_processes import etcd, new_etcd, prefix, shared_etcd

__all__ = ["etcd", "new_etcd", "prefix", "shared_etcd"]
