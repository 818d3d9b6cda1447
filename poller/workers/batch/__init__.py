"""One Celery message: start its targets, load them, collect them, write the results, end. Nothing
here lives longer than the worker process or knows how results are stored.
"""
