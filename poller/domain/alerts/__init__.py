"""Rules, alerts and who is told: decisions only. Nothing here knows a clock, Redis or SQL."""
