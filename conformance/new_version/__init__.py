"""Adds a Kubernetes minor version: records its facts, and lists in which answers this server still differs from it."""
