"""`groupmq monitor`: a live view of a queue. State and drawing are pure; the rest is input and output."""
