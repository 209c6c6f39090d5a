"""What the controllers of workloads share: pods, revisions, expectations and ownership."""
