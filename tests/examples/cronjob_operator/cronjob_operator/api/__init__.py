"""The kinds, a package a version."""
