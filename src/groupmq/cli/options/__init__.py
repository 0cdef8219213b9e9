"""What commands are given: the queue, durations, payloads, and the options that several commands have."""
