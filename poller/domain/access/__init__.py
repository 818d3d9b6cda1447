"""Who may do what: scopes, roles, actors, and the audit entry of a change."""
