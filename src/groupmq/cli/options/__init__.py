"""The arguments of commands: the queue, durations, payloads, and the options that several commands have."""
