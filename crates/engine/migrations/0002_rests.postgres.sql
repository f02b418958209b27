-- Since when a job rests (paused, failed, awaiting a token); what it has staged expires by this.
ALTER TABLE crossdock.jobs ADD COLUMN rests_since TIMESTAMPTZ;
