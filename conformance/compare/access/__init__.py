"""Comparisons of authentication, authorization, auditing and admission."""
