"""Fetching jobs and reporting outcomes: when the worker calls the server, and for how many jobs."""
