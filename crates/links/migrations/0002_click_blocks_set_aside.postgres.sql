-- The newest form of blocks known to the program that could not read this one. Set: it is left aside until a program
-- that knows a newer form looks at it, and does not stop the blocks behind it.
ALTER TABLE click_batches ADD COLUMN unreadable_by BIGINT;
