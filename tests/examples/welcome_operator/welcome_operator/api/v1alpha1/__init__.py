"""The kinds' version v1alpha1."""
