"""OpenAPI v3: the index and one document for each group version; OpenAPI v2 from the same parts."""
