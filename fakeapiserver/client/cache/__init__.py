"""Copies of what a server has, kept up to date (upstream: k8s.io/client-go/tools/cache)."""

__all__ = ["delta_fifo", "indexer", "lister", "reflector", "shared_informer"]
