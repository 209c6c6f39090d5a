"""Benchmarks of size: many objects, clients and watchers, in memory, in a file and in etcd, beside the real kube-apiserver."""
