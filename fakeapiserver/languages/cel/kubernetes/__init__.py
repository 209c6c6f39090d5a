"""Kubernetes' own functions: quantities, versions, addresses, networks, URLs and named formats.

Upstream: k8s.io/apiserver/pkg/cel/library/{quantity,semverlib,ip,cidr,urls,format}.go, k8s.io/apiserver/pkg/cel/*.go
"""
