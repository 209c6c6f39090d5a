"""A real etcd for tests of recordings."""

from tests.etcd_processes import shared_etcd

__all__ = ["shared_etcd"]
