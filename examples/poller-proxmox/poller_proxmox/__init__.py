"""Collectors for Proxmox VE and Proxmox Backup Server. pyproject.toml has their entry points."""

from poller_proxmox.collector import ProxmoxBackup, ProxmoxVe

__all__ = ["ProxmoxBackup", "ProxmoxVe"]
