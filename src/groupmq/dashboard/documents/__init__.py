"""A document per page: plain frozen records, made from the public API of groupmq only.

The page `lanes` is `documents/lanes.py` (what it says), `templates/lanes.html` (how it looks) and the route `lanes`.
The JSON API answers the same record.
"""
