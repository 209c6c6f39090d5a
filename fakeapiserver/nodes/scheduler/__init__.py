"""Binds pods to nodes (upstream: pkg/scheduler/schedule_one.go)."""
