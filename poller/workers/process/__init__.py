"""The worker process as Celery sees it: heartbeat, queue subscriptions, pools, consumer, and an orderly shutdown."""
