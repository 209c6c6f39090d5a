"""Programs outside of this process: how they are started and ended, and operators among them."""
