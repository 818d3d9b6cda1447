"""The Celery application and its configuration. The reasons are in docs/decisions/0002."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from celery import Celery
from celery.signals import beat_init, celeryd_init, setup_logging
from kombu.utils.url import maybe_sanitize_url

from poller import bootstrap, errors
from poller.security import process_memory
from poller.settings import Settings
from poller.state.keys import ROUTINE_PRIORITY, URGENT_PRIORITY


def _configuration(settings: Settings) -> dict[str, Any]:
    return {
        "broker_url": settings.broker_url,
        "broker_transport_options": {
            # The board's leases return the targets of a dead worker within seconds; acks would
            # take an hour.
            "ack_emulation": False,
            "body_encoding": "utf-8",
            "priority_steps": [URGENT_PRIORITY, ROUTINE_PRIORITY],
            "polling_interval": 0.2,
            "socket_timeout": 2,
            "socket_connect_timeout": 2,
            "socket_keepalive": True,
            "health_check_interval": 3,
            "max_connections": 50,
            "client_name": "poller",
        },
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_channel_error_retry": True,
        "result_backend": None,
        "result_expires": None,  # else Celery adds an entry that cleans a result backend
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_acks_late": True,
        "task_default_queue": "poller",
        "task_publish_retry_policy": {
            "max_retries": 2,
            "interval_start": 0,
            "interval_step": 0.2,
            "interval_max": 0.5,
        },
        "task_send_sent_event": False,
        "include": [
            "poller.tasks.job",
            "poller.tasks.poll",
            "poller.tasks.scrape",
            "poller.workers.lifecycle",
        ],
        "worker_pool": "poller.workers.process.thread_pool:TaskPool",
        "worker_concurrency": settings.worker_concurrency,
        "worker_prefetch_multiplier": 1,
        "worker_consumer": "poller.workers.process.consumer:Consumer",
        "worker_redirect_stdouts": False,
        "worker_send_task_events": False,
        "beat_scheduler": "poller.beat.scheduler:PollScheduler",
        "beat_schedule": {},  # the leader makes an entry for each job
        "beat_max_loop_interval": settings.tick_s,
        "beat_enable_remote_control": True,
        "redbeat_key_prefix": f"{settings.key_prefix}redbeat:",
        "redbeat_lock_timeout": settings.leader_lock_s,
        # Only for display: RedBeat uses the scheduler's client, so this has no password.
        "redbeat_redis_url": maybe_sanitize_url(settings.broker_url),
        "redbeat_redis_options": {},
        "timezone": "UTC",
    }


def on_command_line(option: str) -> bool:
    """True if the option is on the `celery` command line, False if it is Celery's default."""
    context = click.get_current_context(silent=True)
    source = context.get_parameter_source(option) if context else None
    defaults = (
        None,
        click.core.ParameterSource.DEFAULT,
        click.core.ParameterSource.DEFAULT_MAP,
    )
    return source not in defaults


@setup_logging.connect
def _configure_logs(loglevel: int | str | None = None, **_: Any) -> None:
    """Replace Celery's set-up of logs by ours."""
    configure_logs(loglevel)


def configure_logs(loglevel: int | str | None = None) -> None:
    """Configure logs at the level of the command line, or at that of the settings."""
    name = logging.getLevelName(loglevel) if isinstance(loglevel, int) else loglevel
    level = name.upper() if name and on_command_line("loglevel") else None
    bootstrap.services().configure_logs(level)


@celeryd_init.connect
def _prepare_worker(**_: Any) -> None:
    process_memory.forbid_core_files()
    _report_errors("worker")


@beat_init.connect
def _prepare_beat(**_: Any) -> None:
    process_memory.forbid_core_files()
    _report_errors("beat")
    with _refusals():
        bootstrap.services().publish_metrics("beat")
        bootstrap.services().start_traces("beat")


def _guard_flower(context: click.Context, _option: click.Parameter, _value: Any) -> None:
    """Make `celery -A poller flower` as safe as `poller flower`, before it reads its options."""
    if context.info_name == "flower":
        from poller import flower_guard

        flower_guard.install(bootstrap.services().settings)


def _report_errors(role: str) -> None:
    """Refuse to start with a Sentry DSN that cannot be used."""
    with _refusals():
        bootstrap.services().report_errors(role)


@contextmanager
def _refusals() -> Iterator[None]:
    """End the process with the text of a setting that is refused: Celery would go on."""
    try:
        yield
    except errors.ConfigError as error:
        message = f"error[{error.code}]: {error}\n  try: {error.hint}"
        raise SystemExit(message) from None


app = Celery("poller", amqp="poller.workers.process.queue_channel:Amqp")
# The one door of Celery to the command of a plugin: an option that every command has. Nothing reads
# its value; its callback runs before Flower does.
app.user_options["preload"].add(
    click.Option(
        ["--guard-flower"],
        is_flag=True,
        hidden=True,
        expose_value=False,
        callback=_guard_flower,
    )
)
app.conf.update(_configuration(bootstrap.services().settings))
