-- A partition that is fetched when all the others have ended and their records are processed: it looks once more where
-- late records may have come.
ALTER TABLE partitions ADD COLUMN closing INTEGER NOT NULL DEFAULT 0;
