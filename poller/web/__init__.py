"""The web role: one live page, its API, and metrics. Reads only; nothing here changes a target."""
