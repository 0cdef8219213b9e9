"""The queue. `methods.py` is the table of contents: it names each method and the file that has it.

The files are cut by concept, and their functions take the queue as their first argument. The classes are one line:
`QueueBase` (options and connection), `QueueMethods` (the table), `Directory` (the class methods), those of
`client/partitions` (what a queue with partitions does in another way), `QueueRuntime` (event loops) and `Queue`.
"""
