"""Who did what, and what became of it: requests written down as a policy asks for (audit.k8s.io/v1).

Upstream: k8s.io/apiserver/pkg/audit, plugin/pkg/audit.
"""
