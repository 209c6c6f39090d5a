"""Caches of a server's objects, kept up to date by watches (upstream: k8s.io/client-go/tools/cache)."""

__all__ = ["delta_fifo", "indexer", "lister", "reflector", "shared_informer"]
