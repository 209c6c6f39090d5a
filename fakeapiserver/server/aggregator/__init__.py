"""API servers behind this one: APIServices that name a Service. Upstream: k8s.io/kube-aggregator."""
