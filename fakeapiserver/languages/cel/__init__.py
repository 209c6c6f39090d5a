"""The Common Expression Language as cel-go implements it, with Kubernetes' function libraries."""
