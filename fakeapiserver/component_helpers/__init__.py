"""Code that controllers, the scheduler and the kubelet share (upstream: k8s.io/component-helpers, pkg/controller, pkg/api/v1/pod)."""
