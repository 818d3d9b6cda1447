"""The address of the page of notifications: filter and page of its deliveries."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Depends, Query

from poller import errors
from poller.db.alerts.delivery_listing import DeliveryFilter
from poller.domain.alerts.telling.delivery import DeliveryState
from poller.web.api.contract import paging
from poller.web.api.contract.target_ids import LARGEST_ID

#: Deliveries of one page.
LIMIT = 50
_LONGEST_ID = 19


@dataclass(frozen=True, slots=True)
class DeliveriesQuery:
    """The parameters of the address. The texts are as they were typed."""

    state: str = ""
    route: str = ""
    receiver: str = ""
    alert: str = ""  # the id of an alert that they tell of
    after: str = ""  # the cursor

    @property
    def wanted(self) -> DeliveryFilter:
        """The filter of the service. Raises InvalidInput."""
        key = paging.decode(self.after, int)
        return DeliveryFilter(
            state=DeliveryState(self.state) if self.state else None,
            route=self.route,
            receiver=self.receiver,
            alert_id=self._alert_id,
            before_id=key[0] if key else None,
        )

    @property
    def is_narrowed(self) -> bool:
        return any((self.state, self.route, self.receiver, self.alert))

    @property
    def command(self) -> str:
        """The command that lists the same."""
        words = ["poller", "notify", "deliveries"]
        for name in ("state", "route", "receiver", "alert"):
            text = getattr(self, name)
            if text:
                words += [f"--{name}", text]
        return shlex.join(words)

    @property
    def _alert_id(self) -> int | None:
        text = self.alert
        if not text:
            return None
        if not (text.isascii() and text.isdigit()) or len(text) > _LONGEST_ID:
            raise errors.InvalidInput(
                f'alert: "{text}" is not the number of an alert',
                hint="the pages of alerts have their numbers",
                field="alert",
            )
        return min(int(text), LARGEST_ID)

    def url(self, **changes: object) -> str:
        """The address with some parameters changed. Every change goes back to the first page."""
        query = replace(self, **{"after": "", **changes})  # type: ignore[arg-type]
        given = {each.name: getattr(query, each.name) for each in fields(query)}
        kept = {name: str(value) for name, value in given.items() if value}
        return f"notifications?{urlencode(kept)}" if kept else "notifications"


Name = Annotated[str, Query(max_length=100)]


def _query(
    state: DeliveryState | Literal[""] = "",
    route: Name = "",
    receiver: Name = "",
    alert: Annotated[str, Query(max_length=40)] = "",
    after: Annotated[str, Query(max_length=2_000)] = "",
) -> DeliveriesQuery:
    return DeliveriesQuery(str(state), route.strip(), receiver.strip(), alert.strip(), after)


#: A parameter of a route: FastAPI makes it from the address.
RequestedDeliveries = Annotated[DeliveriesQuery, Depends(_query)]
