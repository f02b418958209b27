-- A partition that is fetched when all the others have ended and their records are processed: it looks once more where
-- late records may have come.
ALTER TABLE crossdock.partitions ADD COLUMN closing BOOLEAN NOT NULL DEFAULT FALSE;
