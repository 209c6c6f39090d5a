"""The report of a sweep or exploration as one HTML file, which needs nothing else: `--page=FILE`."""
