-- What the source was foretold to be asked for, as JSON, if it could be told before the import started.
ALTER TABLE import_parameters ADD COLUMN forecast TEXT;
