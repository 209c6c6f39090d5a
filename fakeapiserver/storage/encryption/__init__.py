"""Encryption at rest: the values that API servers keep in etcd, encrypted by keys of a file."""
