"""`python -m groupmq.demo`: producers, worker processes, failures, delays and a kill, and the proof at the end."""
