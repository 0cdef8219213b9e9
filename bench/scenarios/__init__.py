"""What is measured. Each scenario drives one library on a clean server and yields samples."""
