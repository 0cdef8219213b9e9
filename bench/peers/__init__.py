"""The libraries under test. Each runs in its own process behind the same small command line."""
