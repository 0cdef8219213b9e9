"""The duties of a queue beside its jobs. Workers run them in the background, `Queue.run_duty_once` runs one of them."""
