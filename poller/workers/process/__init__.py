"""The worker process as Celery sees it: heartbeat, subscriptions, pools, consumer, shutdown."""
