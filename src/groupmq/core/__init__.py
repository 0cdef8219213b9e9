"""Words and rules without I/O: options, records, events, schedules, errors."""
