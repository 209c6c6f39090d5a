"""Runs the controllers: beside the server of this process, or against any other (upstream: cmd/kube-controller-manager)."""
