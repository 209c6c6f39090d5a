"""Benchmarks: this server beside the real kube-apiserver and its etcd, on the same machine."""
