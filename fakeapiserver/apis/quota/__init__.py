"""Usage of ResourceQuotas by objects (upstream: k8s.io/kubernetes/pkg/quota/v1, k8s.io/apiserver/pkg/quota/v1)."""
