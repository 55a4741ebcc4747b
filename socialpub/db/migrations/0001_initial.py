"""Create the first tables.

Times are stamps (`clock.stamp`), so a comparison of text compares time, and SQLite can put them into JSON. Ids are
UUIDv7 as text. JSON columns contain objects.
"""

TABLES = """
CREATE TABLE appliance (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE api_key (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, scope TEXT NOT NULL, secret_hash BLOB NOT NULL,
    providers TEXT, profiles TEXT,
    created_at TEXT NOT NULL, expires_at TEXT, revoked_at TEXT, last_used_at TEXT
) WITHOUT ROWID;

CREATE TABLE profile (
    id TEXT PRIMARY KEY, provider TEXT NOT NULL, account_id TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL,
    username TEXT, picture_url TEXT, expires_at TEXT, posts_count INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    access_token BLOB, refresh_token BLOB, access_expires_at TEXT, refresh_expires_at TEXT,
    scopes TEXT NOT NULL DEFAULT '', facts TEXT NOT NULL DEFAULT '{}', options TEXT NOT NULL DEFAULT '{}',
    reason TEXT, disconnected_at TEXT
);
-- An account is connected once at a time; after `disconnect` the same account may come back as a new profile.
CREATE UNIQUE INDEX profile_account ON profile (provider, account_id) WHERE status <> 'disconnected';

CREATE TABLE audience (id INTEGER PRIMARY KEY, members TEXT NOT NULL UNIQUE);
CREATE TABLE audience_member (
    audience_id INTEGER NOT NULL, profile_id TEXT NOT NULL, provider TEXT NOT NULL,
    PRIMARY KEY (audience_id, profile_id)
) WITHOUT ROWID;
CREATE INDEX audience_of_profile ON audience_member (profile_id);
CREATE TABLE audience_count (
    audience_id INTEGER NOT NULL, status TEXT NOT NULL, posts INTEGER NOT NULL, PRIMARY KEY (audience_id, status)
) WITHOUT ROWID;

CREATE TABLE post (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, body TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    scheduled_at TEXT, canceled_at TEXT, audience_id INTEGER NOT NULL
);
CREATE INDEX post_newest ON post (created_at, id);
CREATE INDEX post_by_status ON post (status, created_at, id);
CREATE INDEX post_by_audience ON post (audience_id, created_at, id);
CREATE INDEX post_by_audience_and_status ON post (audience_id, status, created_at, id);
CREATE INDEX post_scheduled ON post (scheduled_at) WHERE scheduled_at IS NOT NULL;

CREATE TABLE artifact (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, file_name TEXT NOT NULL, declared_type TEXT NOT NULL,
    declared_bytes INTEGER NOT NULL, created_at TEXT NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0, stored_generation INTEGER, etag TEXT,
    kind TEXT, mime_type TEXT, size_bytes INTEGER, storage_key TEXT UNIQUE, facts TEXT, verified_at TEXT,
    reason TEXT, removed_at TEXT
);
CREATE INDEX artifact_unsettled ON artifact (created_at) WHERE status = 'reserved';
CREATE INDEX artifact_verified ON artifact (verified_at) WHERE status = 'verified' AND removed_at IS NULL;

CREATE TABLE media (
    id TEXT PRIMARY KEY, post_id TEXT NOT NULL, position INTEGER NOT NULL, artifact_id TEXT NOT NULL, alt TEXT
);
CREATE INDEX media_of_post ON media (post_id, position);
CREATE INDEX media_of_artifact ON media (artifact_id);

CREATE TABLE delivery (
    id TEXT PRIMARY KEY, post_id TEXT NOT NULL, position INTEGER NOT NULL,
    profile_id TEXT NOT NULL, provider TEXT NOT NULL, profile_name TEXT NOT NULL, account_id TEXT NOT NULL,
    state TEXT NOT NULL, options TEXT NOT NULL, scheduled_at TEXT, published_at TEXT, failed_at TEXT,
    provider_post_id TEXT, url TEXT, error_message TEXT,
    due_at TEXT NOT NULL, run_at TEXT NOT NULL, started_at TEXT, owner TEXT,
    plan TEXT, step INTEGER NOT NULL DEFAULT 0, memo TEXT NOT NULL DEFAULT '{}', progress TEXT NOT NULL DEFAULT '{}',
    committed_at TEXT, content_key TEXT NOT NULL
);
CREATE INDEX delivery_of_post ON delivery (post_id, position);
CREATE INDEX delivery_due ON delivery (run_at) WHERE state = 'queued';
CREATE INDEX delivery_running ON delivery (profile_id) WHERE state = 'running';
CREATE INDEX delivery_lane ON delivery (profile_id, run_at) WHERE state = 'queued';
-- Past its commit and not yet read back: nothing of equal content is sent meanwhile.
CREATE INDEX delivery_committed ON delivery (profile_id, content_key)
    WHERE committed_at IS NOT NULL AND state IN ('queued', 'running');
-- One post at the network is the outcome of one delivery at most.
CREATE UNIQUE INDEX delivery_provider_post ON delivery (provider, account_id, provider_post_id)
    WHERE provider_post_id IS NOT NULL;

CREATE TABLE attempt (
    n INTEGER PRIMARY KEY, delivery_id TEXT NOT NULL, profile_id TEXT NOT NULL, provider TEXT NOT NULL,
    step TEXT NOT NULL, started_at TEXT NOT NULL, ended_at TEXT, outcome TEXT NOT NULL,
    message TEXT, provider_code TEXT, request_id TEXT, next_at TEXT
);
CREATE INDEX attempt_of_delivery ON attempt (delivery_id);

CREATE TABLE log_entry (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL, delivery_id TEXT NOT NULL, post_id TEXT NOT NULL,
    profile_id TEXT NOT NULL, provider TEXT NOT NULL, type TEXT NOT NULL, occurred_at TEXT NOT NULL,
    post_body TEXT, post_scheduled_at TEXT, profile_name TEXT, release_url TEXT, provider_post_id TEXT,
    error_message TEXT
);
CREATE INDEX log_entry_of_profile ON log_entry (profile_id, n);

-- The whole network refuses this app: its lane is held once, and probed slowly.
CREATE TABLE hold (
    provider TEXT PRIMARY KEY, reason TEXT NOT NULL, code TEXT, since TEXT NOT NULL, probe_at TEXT NOT NULL
) WITHOUT ROWID;

-- A network said "not before": for one profile and one endpoint ('' is all of them).
CREATE TABLE not_before (
    profile_id TEXT NOT NULL, endpoint TEXT NOT NULL, until TEXT NOT NULL, reason TEXT NOT NULL,
    PRIMARY KEY (profile_id, endpoint)
) WITHOUT ROWID;

CREATE TABLE idempotency (
    key_id TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, owner TEXT, created_at TEXT NOT NULL,
    status INTEGER, location TEXT, body BLOB,
    PRIMARY KEY (key_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency (created_at);
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in TABLES.split(";\n"):
        if statement.strip():
            db.execute_sql(statement)
