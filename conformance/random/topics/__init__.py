"""Topics of random requests for admission, one or a few plugins each."""
