"""Reads the objects in a file of etcd: a snapshot, or a member's database. No etcd is needed."""
