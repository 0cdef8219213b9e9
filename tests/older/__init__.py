"""Processes of an older release beside those of this one."""
