"""Who has an address? Names from the DHCP leases that were read last, for clients and connections."""

from __future__ import annotations

from dataclasses import dataclass, field

from poller.collectors.routeros.families.family import DHCP_ADDRESS, DHCP_NAME, Row, Rows


@dataclass(slots=True)
class Leases:
    """Both by address and by MAC address."""

    names: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)

    def learn(self, rows: Rows) -> None:
        self.names, self.addresses = {}, {}
        for row in rows:
            mac, address = row.get("mac-address", ""), row.get("address", "")
            self.names[mac] = self.names[address] = row.get("host-name") or mac
            self.addresses[mac] = address

    def named(self, rows: Rows) -> Rows:
        """The same rows with `dhcp-name` and `dhcp-address`, where known."""
        return [{**row, **self._known(row)} for row in rows] if self.names else rows

    def _known(self, row: Row) -> dict[str, str]:
        who = row.get("mac-address") or row.get("src-address", "")
        if who not in self.names:
            return {}
        return {DHCP_NAME: self.names[who], DHCP_ADDRESS: self.addresses.get(who, who)}
