"""`poller up` beside its files: the database and the data of the embedded server."""

from __future__ import annotations

import pytest

from poller import errors
from poller.bootstrap import Services
from poller.cli.commands.up import LocalCluster
from poller.cli.output.log_lines import LogLines


def test_a_database_that_is_deleted_stops_everything(services: Services) -> None:
    """Going on would mean to poll into a file that is gone."""
    cluster = LocalCluster(services.settings, LogLines(to_stderr=True))
    assert services.settings.home.joinpath("poller.db").stat().st_size > 0
    services.settings.home.joinpath("poller.db").unlink()
    with pytest.raises(errors.StoreUnavailable, match="was deleted under a running poller"):
        cluster._watch(services, seconds=30)
