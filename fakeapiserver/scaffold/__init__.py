"""Operators in Python, begun and kept up: `fakeapiserver init`, `create api`, `create webhook`, `manifests` (kubebuilder's words)."""
