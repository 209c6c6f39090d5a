"""Composes the handler chain and serves it: the only package that knows FastAPI, uvicorn and TLS."""
