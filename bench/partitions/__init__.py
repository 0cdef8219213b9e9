"""The cost of partitions: idle workers, jobs on one and on three primaries, and a simulation of 64 shards."""
