"""Storage in etcd for a server: the connection that its flags describe, and the bytes that other API servers read and write."""
