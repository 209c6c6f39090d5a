"""Audit logging: records requests and their results as an audit policy demands (audit.k8s.io/v1).

Upstream: k8s.io/apiserver/pkg/audit, plugin/pkg/audit.
"""
