"""What tests hold in their hands: the pytest plugin and the storage suite."""
