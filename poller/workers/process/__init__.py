"""The worker process as Celery sees it: heartbeat, queue subscriptions, pools, consumer, handback at shutdown."""
