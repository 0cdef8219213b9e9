"""The queue, cut by concept: adding, inspection, search, groups, changes, bulk, repeats, duties, oversight, directory.

Each part is a class on `QueueBase`; `QueueMethods` joins them, `runtime.py` adds what is asynchronous by nature, and
`queue.py` has the class that users see.
"""
