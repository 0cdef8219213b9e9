"""The queue. `methods.py` is the table of contents: it names each method and the file that has it.

There is one file per concept; its functions take the queue as their first argument. The classes are one line:
`QueueBase` (options and connection), `QueueMethods` (the table), `Directory` (the class methods), those of
`client/partitions` (what differs in a queue with partitions), `QueueRuntime` (event loops) and `Queue`.
"""
