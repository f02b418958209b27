-- Links of this import that look like earlier ones under another source id, as JSON: [source id, earlier source id], at
-- most 1,000. NULL until somebody asks after the import has completed.
ALTER TABLE import_parameters ADD COLUMN rekeys TEXT;
