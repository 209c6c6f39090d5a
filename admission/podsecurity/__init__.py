"""The Pod Security Standards: levels, their versions, and what each forbids (upstream: k8s.io/pod-security-admission)."""
