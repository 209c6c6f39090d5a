"""Decodes CBOR as Go types, and says where their JSON has bytes and floats."""
