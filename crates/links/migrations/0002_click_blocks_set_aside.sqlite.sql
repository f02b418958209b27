-- As on Postgres.
ALTER TABLE click_batches ADD COLUMN unreadable_by INTEGER;
