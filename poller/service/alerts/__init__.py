"""Rules, alerts, maintenance and notifications: what people do with them."""
