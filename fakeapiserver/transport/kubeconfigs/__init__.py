"""Kubeconfigs: read as kubectl does, checked, written, and merged into the files of others."""
