"""Celery tasks: thin shells around the worker's flow."""
