-- A ledger lives on Postgres; on SQLite this room has no tables.
SELECT 1;
