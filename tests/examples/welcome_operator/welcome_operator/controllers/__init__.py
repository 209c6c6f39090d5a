"""The controllers, a module a kind."""
