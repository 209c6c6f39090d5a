"""The Kubernetes API server to test against."""
