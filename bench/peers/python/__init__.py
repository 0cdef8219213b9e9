"""The Python libraries: a script each, in an environment of its own, behind the command line that all peers have."""
