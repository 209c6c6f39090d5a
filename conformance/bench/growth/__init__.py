"""The growth of time and memory with the number and size of objects, watchers, clients and others."""
