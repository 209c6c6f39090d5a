"""The checks: each finds what is wrong with a history, as sentences. Pure.

Upstream: the promises are those of etcd (website/content/en/docs/v3.6/learning/api_guarantees.md), the nine of watches are those of its
tests/robustness/validate/watch.go, and the promises of lists those of kubernetes.io/docs/reference/using-api/api-concepts (resource
versions).
"""
