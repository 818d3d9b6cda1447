"""Users, tokens, log-ins and the audit log: what commands, API and pages do with them."""
