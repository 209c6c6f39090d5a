"""Who owns which field: structured merge, server-side apply, managedFields."""
