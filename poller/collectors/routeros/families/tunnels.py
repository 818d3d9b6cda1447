"""Families about encrypted peers: IPsec and WireGuard."""

from __future__ import annotations

from poller.collectors.routeros.families.family import (
    Family,
    Info,
    Menu,
    Table,
    counter,
    flag,
    gauge,
    labels_from,
)
from poller.collectors.routeros.value_parser import milliseconds, seconds

_IPSEC = Table(
    labels=labels_from("local-address", "name", "remote-address"),
    metrics=(
        counter("rx-bytes", "ipsec_peer_rx_byte", "Bytes received from the peer"),
        counter("tx-bytes", "ipsec_peer_tx_byte", "Bytes sent to the peer"),
        counter("rx-packets", "ipsec_peer_rx_packet", "Packets received from the peer"),
        counter("tx-packets", "ipsec_peer_tx_packet", "Packets sent to the peer"),
        gauge("ph2-total", "ipsec_peer_security_association", "Security associations", absent=0),
        gauge(
            "last-seen",
            "ipsec_peer_last_seen",
            "Milliseconds since the peer was heard",
            milliseconds,
            absent=0,
        ),
        gauge(
            "uptime",
            "ipsec_peer_uptime",
            "Milliseconds since the peer is connected",
            milliseconds,
            absent=0,
        ),
        flag("responder", "ipsec_peer_responder", "Did the peer begin?"),
        flag("natt-peer", "ipsec_peer_natt_enabled", "Is NAT traversal in use?"),
    ),
    info=Info("ipsec_peer_state_info", "How far the peers have come", labels_from("state")),
)

IPSEC = Family(
    "ipsec",
    "active IPsec peers",
    (Menu("/ip/ipsec/active-peers", (_IPSEC,), words=("stats",)),),
)

_WIREGUARD = Table(
    labels=labels_from("interface", "name", "public-key"),
    metrics=(
        flag("disabled", "peer_disabled", "Is the peer switched off?"),
        counter("rx", "peer_rx", "Bytes received from the peer"),
        counter("tx", "peer_tx", "Bytes sent to the peer"),
        gauge(
            "last-handshake",
            "last_handshake",
            "Seconds since the last handshake; 0: never",
            seconds,
            absent=0,
        ),
    ),
    info=Info(
        "peer_info",
        "A WireGuard peer",
        labels_from(
            "comment", "current-endpoint-address", "current-endpoint-port", "allowed-address"
        ),
    ),
)

WIREGUARD = Family(
    "wireguard", "WireGuard peers", (Menu("/interface/wireguard/peers", (_WIREGUARD,)),)
)

FAMILIES = (IPSEC, WIREGUARD)
