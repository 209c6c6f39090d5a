"""Copies of what a server has, kept up to date (upstream: k8s.io/client-go/tools/cache)."""
