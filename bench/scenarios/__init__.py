"""The scenarios. Each runs one library on a clean server and yields samples."""
