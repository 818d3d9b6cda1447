"""Proxmox VE and Proxmox Backup Server for poller, over their HTTP API. Entry points: see pyproject.toml."""

from poller_proxmox.collector import ProxmoxBackup, ProxmoxVe

__all__ = ["ProxmoxBackup", "ProxmoxVe"]
