"""Sources of random requests and objects, each from one seed."""
