"""A job for poller that writes a report for each site. pyproject.toml has its entry point."""

from poller_site_report.job import site_report

__all__ = ["site_report"]
