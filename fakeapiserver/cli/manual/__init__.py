"""The data of `--help`, `fakeapiserver help TOPIC`, `completion` and suggestions. No server start imports it."""
