"""Two minor versions of Kubernetes: what changed between them, and what that changes for a suite."""
