"""Webhooks that an API server asks (upstream: sigs.k8s.io/controller-runtime/pkg/webhook)."""
