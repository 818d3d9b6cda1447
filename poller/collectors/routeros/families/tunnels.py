"""Encrypted peers: IPsec and WireGuard."""

from __future__ import annotations

from poller.collectors.routeros import value_parser
from poller.collectors.routeros.families.family import (
    Ask,
    Family,
    Info,
    Metric,
    Table,
    counter,
    flag,
    same,
)


def _peer(
    property_: str, name: str, help_: str, parse: value_parser.Parse = value_parser.number
) -> Metric:
    return Metric(property_, f"ipsec_peer_{name}", help_, parse=parse, absent=0)


IPSEC = Family(
    "ipsec",
    "active IPsec peers",
    (
        Ask(
            "/ip/ipsec/active-peers",
            (
                Table(
                    labels=same("local-address", "name", "remote-address"),
                    metrics=(
                        counter("rx-bytes", "ipsec_peer_rx_byte", "Bytes received from the peer"),
                        counter("tx-bytes", "ipsec_peer_tx_byte", "Bytes sent to the peer"),
                        counter(
                            "rx-packets", "ipsec_peer_rx_packet", "Packets received from the peer"
                        ),
                        counter("tx-packets", "ipsec_peer_tx_packet", "Packets sent to the peer"),
                        _peer("ph2-total", "security_association", "Security associations"),
                        _peer(
                            "last-seen",
                            "last_seen",
                            "Milliseconds since the peer was heard",
                            value_parser.milliseconds,
                        ),
                        _peer(
                            "uptime",
                            "uptime",
                            "Milliseconds since the peer is connected",
                            value_parser.milliseconds,
                        ),
                        flag("responder", "ipsec_peer_responder", "Did the peer begin?"),
                        flag("natt-peer", "ipsec_peer_natt_enabled", "Is NAT traversal in use?"),
                    ),
                    info=Info(
                        "ipsec_peer_state_info", "How far the peers have come", same("state")
                    ),
                ),
            ),
            words=("stats",),
        ),
    ),
)

WIREGUARD = Family(
    "wireguard",
    "WireGuard peers",
    (
        Ask(
            "/interface/wireguard/peers",
            (
                Table(
                    labels=same("interface", "name", "public-key"),
                    metrics=(
                        flag("disabled", "peer_disabled", "Is the peer switched off?"),
                        counter("rx", "peer_rx", "Bytes received from the peer"),
                        counter("tx", "peer_tx", "Bytes sent to the peer"),
                        Metric("last-handshake", "last_handshake", "Seconds since the last handshake; 0: never",
                               parse=value_parser.seconds, absent=0),
                    ),
                    info=Info(
                        "peer_info",
                        "A WireGuard peer",
                        same("comment", "current-endpoint-address", "current-endpoint-port", "allowed-address"),
                    ),
                ),
            ),
        ),
    ),
)  # fmt: skip

FAMILIES = (IPSEC, WIREGUARD)
