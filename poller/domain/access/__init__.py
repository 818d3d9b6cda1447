"""Rights: scopes, roles, actors, and the audit entry of a change."""
