"""The Python libraries: a script each, in its own environment, behind the command line of all peers."""
