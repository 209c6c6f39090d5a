"""Encryption at rest: what an EncryptionConfiguration says about the bytes in etcd, in kube-apiserver's formats."""
