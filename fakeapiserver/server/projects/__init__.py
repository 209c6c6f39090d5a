"""The manifests and webhooks of a project under test, loaded from its files."""
