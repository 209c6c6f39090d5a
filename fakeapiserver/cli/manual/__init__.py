"""What `--help`, `fakeapiserver help TOPIC`, `completion` and suggestions know. Nothing here is imported when a server starts."""
