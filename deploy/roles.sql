-- The role of all services but `migrate`: it reads and changes rows, and no tables.
-- Run by the owner of the tables with psql, after `poller db upgrade`; safe to repeat.
-- The password is in the file that the environment variable APP_PASSWORD_FILE names.
\set ON_ERROR_STOP 1
\set password `cat "$APP_PASSWORD_FILE"`

SELECT 'CREATE ROLE poller_app'
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'poller_app') \gexec

ALTER ROLE poller_app LOGIN PASSWORD :'password' NOCREATEDB NOCREATEROLE;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO poller_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO poller_app;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO poller_app;
REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM poller_app;
-- The audit log only grows; retention deletes old rows.
REVOKE UPDATE ON audit FROM poller_app;

-- Tables of later migrations.
ALTER DEFAULT PRIVILEGES IN SCHEMA public
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO poller_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public
  GRANT USAGE ON SEQUENCES TO poller_app;
