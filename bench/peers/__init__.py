"""The libraries under test. Each runs as a process of its own behind the same small command line."""
