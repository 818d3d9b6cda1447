"""The receiver `apprise`: over a hundred services by their Apprise URLs, which are secrets.

Apprise is an extra. A service that hangs is left behind in its thread.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from poller import errors, plugins
from poller.alerts.receivers import api
from poller.alerts.receivers.api import Place
from poller.domain.alerts.telling import notice_text
from poller.domain.alerts.telling.notice import Notice, NoticeKind
from poller.domain.inventory.api_version import Stated
from poller.sinks.tls_options import absolute

_MAX_BYTES = 64 * 1024
#: Notices whose services are remembered, so that a repeat leaves out those that took it.
_REMEMBERED = 100


def _needed(path: Path) -> Path:
    return absolute(path) or path


class AppriseOptions(BaseModel):
    """Options of Apprise."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    urls_file: Annotated[Path, AfterValidator(_needed)] = Field(
        description="File with Apprise URLs, one on each line; # begins a comment."
    )
    timeout_s: float = Field(20.0, ge=0.1, le=120, description="Time for one notice.")


class AppriseReceiver:
    """The services of one file of URLs. The file is read for each notice."""

    name: ClassVar[str] = "apprise"
    api_version: ClassVar[Stated] = 1
    Options: ClassVar[type[AppriseOptions]] = AppriseOptions

    def __init__(self, place: Place, options: AppriseOptions) -> None:
        self._place = place
        self._options = options
        self._sending: threading.Thread | None = None
        self._taken: dict[str, set[int]] = {}  # key -> numbers of the services that took it
        self._services()

    def send(self, notice: Notice, key: str) -> str:
        """Tell every service that has not taken this key. Raises StoreUnavailable."""
        if self._sending is not None and self._sending.is_alive():
            raise errors.StoreUnavailable(f"{self._place.name}: an earlier notice still hangs")
        services = self._services()
        taken = self._taken.setdefault(key, set())
        failed: list[str] = []
        arguments = (services, notice.cut(api.MOST_ALERTS), taken, failed)
        self._sending = threading.Thread(
            target=_tell, args=arguments, name=f"apprise-{self._place.name}", daemon=True
        )
        self._sending.start()
        self._sending.join(self._options.timeout_s)
        if self._sending.is_alive():
            cause = f"{len(taken)} of {len(services)} answered in {self._options.timeout_s:g} s"
            raise errors.StoreUnavailable(f"{self._place.name} does not answer", cause)
        if failed:
            cause = f"{', '.join(failed)} did not take it"
            hint = "check the URLs of urls_file with Apprise's own command: apprise -vv"
            raise errors.StoreUnavailable(f"{self._place.name} does not answer", cause, hint)
        self._forget_old()
        return f"taken by {len(services)}: {', '.join(name for name, _ in services)}"

    def close(self) -> None:
        """Nothing stays open between notices."""

    def _services(self) -> list[tuple[str, Any]]:
        """The kind and the client of each URL. Raises InvalidSetting, without any URL."""
        apprise = _library()
        path = self._options.urls_file
        try:
            with path.open("rb") as file:
                text = file.read(_MAX_BYTES).decode("utf-8", errors="replace")
        except OSError as error:
            raise errors.InvalidSetting(
                f'urls_file: "{path}" cannot be used', cause=error.strerror or str(error)
            ) from None
        found = []
        for number, line in enumerate(text.splitlines(), 1):
            url = line.strip()
            if not url or url.startswith("#"):
                continue
            client = apprise.Apprise()
            if not client.add(url):
                raise errors.InvalidSetting(
                    f"urls_file: line {number} is no URL that Apprise knows",
                    hint="its manual lists the form of each service's URL",
                )
            found.append((url.partition("://")[0], client))
        if not found:
            raise errors.InvalidSetting(f'urls_file: "{path}" has no URL')
        return found

    def _forget_old(self) -> None:
        while len(self._taken) > _REMEMBERED:
            del self._taken[next(iter(self._taken))]


def _tell(
    services: list[tuple[str, Any]], notice: Notice, taken: set[int], failed: list[str]
) -> None:
    kinds = {NoticeKind.RESOLVED: "success", NoticeKind.TEST: "info"}
    for number, (name, client) in enumerate(services):
        if number in taken:
            continue
        try:
            took = client.notify(
                title=notice_text.subject(notice),
                body=notice_text.body(notice),
                notify_type=kinds.get(notice.kind, "warning"),
            )
        except Exception as error:  # noqa: BLE001  door: Apprise, and the service behind it
            failed.append(f"{name} ({type(error).__name__})")
            continue
        if took:
            taken.add(number)
        else:
            failed.append(name)


def _library() -> Any:
    try:
        import apprise
    except ImportError as error:
        raise errors.InvalidSetting(
            "kind: the package apprise is not installed",
            cause=plugins.error_text(error),
            hint='install it: pip install "poller[apprise]"',
        ) from None
    return apprise
