"""Running jobs: executors, the runs and rows that they have, and what the end of a run means for its job."""
