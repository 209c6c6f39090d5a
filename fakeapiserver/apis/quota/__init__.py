"""What objects use of a ResourceQuota (upstream: k8s.io/kubernetes/pkg/quota/v1, k8s.io/apiserver/pkg/quota/v1)."""
