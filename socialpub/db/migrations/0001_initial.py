"""Create the tables.

Times are stamps (`clock.stamp`), so a comparison of texts compares times, and SQLite can put them into JSON. Ids are
UUIDv7 as text. JSON columns contain objects. `db/models.py` describes the columns.
"""

APPLICATION_ID = 0x736F6370
"""`socp` in ASCII: the header of the file names the program."""

READS_BACK = "phase IN ('reading_back', 'confirming', 'closing')"
STEP = "json_extract(plan, '$[' || step || '][0]')"
STEP_KIND = "ifnull(json_extract(plan, '$[' || step || '][1]'), '')"
ENDPOINT = f"substr({STEP}, 1, instr({STEP} || ':', ':') - 1)"
FIRST_CALL = f"{STEP_KIND} = 'commit' OR ({STEP_KIND} = 'repeatable' AND phase <> 'committing_again')"
"""The gap between two posts of a profile applies before this call, and not before its repetition."""

EVERY_WAIT = """d.id AS delivery_id, d.post_id, d.profile_id, d.provider, d.state, d.run_at, d.due_at"""
CONNECTED = "JOIN profile p ON p.id = d.profile_id AND p.status <> 'disconnected'"
"""A delivery to a disconnected profile waits for nothing: its claim ends it."""

NONE = "CAST(NULL AS TEXT)"


def _text(expression: str) -> str:
    return f"CAST({expression} AS TEXT)"


TABLES = f"""
CREATE TABLE appliance (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE api_key (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, scope TEXT NOT NULL, secret_hash BLOB NOT NULL,
    providers TEXT, profiles TEXT,
    created_at TEXT NOT NULL, expires_at TEXT, revoked_at TEXT, last_used_at TEXT,
    posts_per_day INTEGER, approval INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE key_use (
    key_id TEXT NOT NULL, accepted_at TEXT NOT NULL, post_id TEXT NOT NULL, profiles INTEGER NOT NULL,
    PRIMARY KEY (key_id, accepted_at, post_id)
) WITHOUT ROWID;

CREATE TABLE profile (
    id TEXT PRIMARY KEY, provider TEXT NOT NULL, account_id TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL,
    username TEXT, picture_url TEXT, expires_at TEXT, posts_count INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    access_token BLOB, refresh_token BLOB, access_expires_at TEXT, refresh_expires_at TEXT,
    scopes TEXT NOT NULL DEFAULT '', facts TEXT NOT NULL DEFAULT '{{}}', options TEXT NOT NULL DEFAULT '{{}}',
    reason TEXT, disconnected_at TEXT, renewed_at TEXT, account_name TEXT, account_read_at TEXT
);
-- An account is connected once at a time. After `disconnect`, the same account may return as a new profile.
CREATE UNIQUE INDEX profile_account ON profile (provider, account_id) WHERE status <> 'disconnected';
CREATE TABLE choice_label (
    profile_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, label TEXT NOT NULL,
    PRIMARY KEY (profile_id, key, value)
) WITHOUT ROWID;
CREATE TABLE consent (
    id TEXT PRIMARY KEY, state_hash BLOB NOT NULL UNIQUE, provider TEXT NOT NULL, verifier BLOB NOT NULL,
    redirect_uri TEXT NOT NULL, name TEXT, expected_profile_id TEXT,
    created_at TEXT NOT NULL, expires_at TEXT NOT NULL, taken_at TEXT, finished_at TEXT,
    profile_id TEXT, revived INTEGER, missing TEXT, error TEXT, hint TEXT, door TEXT NOT NULL DEFAULT 'shell'
) WITHOUT ROWID;
CREATE INDEX consent_age ON consent (created_at);

CREATE TABLE session (
    id TEXT PRIMARY KEY, token_hash BLOB NOT NULL UNIQUE, instance_id TEXT NOT NULL,
    created_at TEXT NOT NULL, last_seen_at TEXT NOT NULL, address TEXT NOT NULL, user_agent TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE sign_in_link (
    token_hash BLOB PRIMARY KEY, instance_id TEXT NOT NULL, purpose TEXT NOT NULL, created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE audience (id INTEGER PRIMARY KEY, members TEXT NOT NULL UNIQUE);
CREATE TABLE audience_member (
    audience_id INTEGER NOT NULL, profile_id TEXT NOT NULL, provider TEXT NOT NULL,
    position INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (audience_id, profile_id)
) WITHOUT ROWID;
CREATE INDEX audience_of_profile ON audience_member (profile_id);

CREATE TABLE post (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, body TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    scheduled_at TEXT, canceled_at TEXT, audience_id INTEGER NOT NULL, outcomes TEXT NOT NULL DEFAULT '',
    restore_count INTEGER NOT NULL DEFAULT 0, text_version INTEGER NOT NULL DEFAULT 0, key_id TEXT
);
-- Every list of posts reads one of these indexes (`db/queries/post_list.py`).
CREATE INDEX post_newest ON post (created_at, id, audience_id, status, outcomes, scheduled_at);
CREATE INDEX post_groups ON post (status, audience_id, outcomes);
CREATE INDEX post_scheduled ON post (scheduled_at, audience_id, status, outcomes) WHERE scheduled_at IS NOT NULL;
CREATE TABLE former_text (
    post_id TEXT NOT NULL, version INTEGER NOT NULL, body TEXT, PRIMARY KEY (post_id, version)
) WITHOUT ROWID;

CREATE TABLE artifact (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, file_name TEXT NOT NULL, declared_type TEXT NOT NULL,
    declared_bytes INTEGER NOT NULL, created_at TEXT NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0, stored_generation INTEGER, etag TEXT,
    kind TEXT, mime_type TEXT, size_bytes INTEGER, storage_key TEXT UNIQUE, facts TEXT, verified_at TEXT,
    reason TEXT, removed_at TEXT, dropped_at TEXT
);
CREATE INDEX artifact_unsettled ON artifact (created_at) WHERE status = 'reserved';
CREATE INDEX artifact_verified ON artifact (verified_at) WHERE status = 'verified' AND removed_at IS NULL;
CREATE TABLE stored_media (files INTEGER NOT NULL, size_bytes INTEGER NOT NULL);
INSERT INTO stored_media VALUES (0, 0);

CREATE TABLE media (
    id TEXT PRIMARY KEY, post_id TEXT NOT NULL, position INTEGER NOT NULL, artifact_id TEXT NOT NULL, alt TEXT
);
CREATE INDEX media_of_post ON media (post_id, position);
CREATE INDEX media_of_artifact ON media (artifact_id);

CREATE TABLE idempotency (
    key_id TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, created_at TEXT NOT NULL,
    status INTEGER NOT NULL, location TEXT, body BLOB,
    PRIMARY KEY (key_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE delivery (
    id TEXT PRIMARY KEY, post_id TEXT NOT NULL, position INTEGER NOT NULL,
    profile_id TEXT NOT NULL, provider TEXT NOT NULL, profile_name TEXT NOT NULL, account_id TEXT NOT NULL,
    state TEXT NOT NULL, options TEXT NOT NULL, scheduled_at TEXT, published_at TEXT, failed_at TEXT,
    provider_post_id TEXT, url TEXT, error_message TEXT,
    due_at TEXT NOT NULL, run_at TEXT NOT NULL, started_at TEXT, owner TEXT,
    plan TEXT, step INTEGER NOT NULL DEFAULT 0, memo TEXT NOT NULL DEFAULT '{{}}',
    progress TEXT NOT NULL DEFAULT '{{}}', committed_at TEXT, content_key TEXT NOT NULL,
    retry_of TEXT, first_endpoint TEXT, content_refused INTEGER NOT NULL DEFAULT 0, reply_to TEXT,
    turn_at TEXT GENERATED ALWAYS AS (min(due_at, run_at)) VIRTUAL,
    phase TEXT GENERATED ALWAYS AS (ifnull(json_extract(progress, '$.phase'), 'preparing')) VIRTUAL,
    line TEXT GENERATED ALWAYS AS (
        CASE WHEN {READS_BACK} THEN '?read_back' WHEN plan IS NULL THEN '+' || ifnull(first_endpoint, 'start')
            WHEN {STEP_KIND} = 'poll' THEN '?' || {ENDPOINT}
            ELSE iif(started_at IS NULL OR {FIRST_CALL}, '+', '-') || {ENDPOINT} END) VIRTUAL
);
CREATE INDEX delivery_of_post ON delivery (post_id, position);
CREATE INDEX delivery_due ON delivery (run_at) WHERE state = 'queued';
CREATE INDEX delivery_running ON delivery (profile_id) WHERE state = 'running';
CREATE INDEX delivery_lane ON delivery (profile_id, run_at) WHERE state = 'queued';
CREATE INDEX delivery_queue ON delivery (profile_id, line, turn_at, id, run_at) WHERE state = 'queued';
CREATE INDEX delivery_stopped ON delivery (profile_id)
    WHERE state = 'queued' AND json_extract(progress, '$.stopped') IS NOT NULL;
-- While the outcome of a call is unknown, no equal content is sent.
CREATE INDEX delivery_equal ON delivery (profile_id, content_key, committed_at)
    WHERE state IN ('queued', 'running');
-- A post on a network is the outcome of at most one delivery.
CREATE UNIQUE INDEX delivery_provider_post ON delivery (provider, account_id, provider_post_id)
    WHERE provider_post_id IS NOT NULL;
CREATE INDEX delivery_without_id ON delivery (published_at) WHERE state = 'published' AND provider_post_id IS NULL;
CREATE INDEX delivery_retries ON delivery (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX delivery_replies ON delivery (reply_to) WHERE reply_to IS NOT NULL;
CREATE INDEX delivery_failed ON delivery (failed_at) WHERE failed_at IS NOT NULL;

CREATE TABLE attempt (
    n INTEGER PRIMARY KEY, delivery_id TEXT NOT NULL, profile_id TEXT NOT NULL, provider TEXT NOT NULL,
    step TEXT NOT NULL, started_at TEXT NOT NULL, ended_at TEXT, outcome TEXT NOT NULL,
    message TEXT, provider_code TEXT, request_id TEXT, next_at TEXT
);
CREATE INDEX attempt_of_delivery ON attempt (delivery_id);

CREATE TABLE log_entry (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL, delivery_id TEXT NOT NULL, post_id TEXT NOT NULL,
    profile_id TEXT NOT NULL, provider TEXT NOT NULL, type TEXT NOT NULL, occurred_at TEXT NOT NULL,
    text_version INTEGER NOT NULL, post_scheduled_at TEXT, profile_name TEXT, release_url TEXT, provider_post_id TEXT,
    error_message TEXT, ends_post INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX log_entry_of_profile ON log_entry (profile_id, n);
CREATE INDEX log_entry_by_id ON log_entry (id);
CREATE INDEX log_entry_rare ON log_entry (type, n) WHERE type IN ('failed', 'canceled');
CREATE INDEX log_entry_message ON log_entry (n, error_message) WHERE error_message IS NOT NULL;

-- A wait that no other row states. `subject` is a network, a profile or a delivery, `calls` a group of its calls ('' is
-- all of them). Without `until`, an event ends the wait. A past wait stays while it explains why a delivery is late.
CREATE TABLE stored_wait (
    subject TEXT NOT NULL, reason TEXT NOT NULL, calls TEXT NOT NULL, since TEXT NOT NULL, until TEXT,
    message TEXT, code TEXT, key_name TEXT, PRIMARY KEY (subject, reason, calls, since)
) WITHOUT ROWID;

-- Every wait of every delivery, also past ones. `db/tables/waits.py` has the reasons. SQLite uses the indexes of the
-- tables only if a column has the same affinity in all branches.
CREATE VIEW wait AS
    SELECT {EVERY_WAIT}, {_text("'appliance'")} AS scope, {_text("'pause'")} AS reason, value AS since,
        {NONE} AS until, value AS message, {NONE} AS code, {NONE} AS key_name
    FROM delivery d JOIN appliance ON name = 'paused_at'
    UNION ALL
    SELECT {EVERY_WAIT}, {_text("'profile'")}, {_text("'reconnect'")}, p.updated_at, {NONE}, p.reason, {NONE}, {NONE}
    FROM delivery d {CONNECTED} WHERE p.status = 'reauthRequired'
    UNION ALL
    SELECT {EVERY_WAIT}, {_text("'content'")}, {_text("'equal'")}, other.committed_at, {NONE}, {NONE}, {NONE}, {NONE}
    FROM delivery d {CONNECTED} JOIN delivery other ON other.profile_id = d.profile_id
        AND other.content_key = d.content_key AND other.committed_at IS NOT NULL
        AND other.state IN ('queued', 'running') AND other.id <> d.id
    WHERE CASE WHEN d.{READS_BACK} OR json_extract(d.progress, '$.commits') > 0
        THEN (other.committed_at, other.id) < (ifnull(d.committed_at, ''), d.id)
        ELSE ifnull(json_extract(d.plan, '$[' || d.step || '][1]'), '') IN ('commit', 'repeatable') END
    UNION ALL
    SELECT {EVERY_WAIT}, {_text("'delivery'")}, {_text("'parent'")}, d.due_at, {NONE}, parent.post_id, {NONE}, {NONE}
    FROM delivery d {CONNECTED} JOIN delivery parent ON parent.id = (
        SELECT id FROM delivery WHERE id = d.reply_to OR retry_of = d.reply_to
            ORDER BY state = 'published' DESC, id DESC LIMIT 1)
    WHERE d.reply_to IS NOT NULL AND parent.state IN ('queued', 'running')
        AND (d.phase IN ('preparing', 'committing') OR json_extract(d.progress, '$.then') = 'preparing')
    UNION ALL
    SELECT {EVERY_WAIT}, {
    _text("CASE w.subject WHEN d.provider THEN 'network' WHEN d.profile_id THEN 'profile' ELSE 'delivery' END")
}, w.reason, w.since, w.until, w.message, w.code, w.key_name
    FROM delivery d {CONNECTED} JOIN stored_wait w ON w.subject IN (d.provider, d.profile_id, d.id)
        AND (w.calls IN ('', iif(d.line LIKE '?%', 'questions', 'publishing'))
            OR w.calls IN (substr(d.line, 2), iif(d.line LIKE '+%', 'commit', '')));

CREATE TABLE trail (
    id INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,
    subject_kind TEXT, subject_id TEXT, subject_label TEXT, detail TEXT NOT NULL DEFAULT '{{}}'
);
CREATE INDEX trail_by_action ON trail (action, id);
CREATE INDEX trail_by_subject ON trail (subject_id, id);

CREATE TABLE webhook (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, url BLOB NOT NULL, secret BLOB NOT NULL, events TEXT NOT NULL,
    added_at TEXT NOT NULL, sent_through INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, next_at TEXT,
    failing_since TEXT, last_response TEXT, last_response_at TEXT, accepted INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0, left_out INTEGER NOT NULL DEFAULT 0, left_out_at TEXT, disabled_at TEXT
) WITHOUT ROWID;

CREATE TABLE alert (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, sentence TEXT NOT NULL, is_event INTEGER NOT NULL, since TEXT NOT NULL,
    sent_at TEXT, ended_at TEXT
) WITHOUT ROWID;
CREATE TABLE notification (id INTEGER PRIMARY KEY, at TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE notification_service (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, sent_through INTEGER NOT NULL, sent_at TEXT,
    failing_since TEXT, next_at TEXT, failure TEXT, sent INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE notify_address (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, url BLOB NOT NULL, added_at TEXT NOT NULL
) WITHOUT ROWID;

-- Counts the published deliveries by delay. A bucket has the delays up to `bucket` and above the bucket before it.
CREATE TABLE sending_delay (
    provider TEXT NOT NULL, bucket REAL NOT NULL, deliveries INTEGER NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (provider, bucket)
) WITHOUT ROWID;
CREATE TABLE delivery_count (
    provider TEXT NOT NULL, outcome TEXT NOT NULL, deliveries INTEGER NOT NULL, PRIMARY KEY (provider, outcome)
) WITHOUT ROWID;
CREATE TABLE event_count (
    event TEXT NOT NULL, provider TEXT NOT NULL, kind TEXT NOT NULL, outcome TEXT NOT NULL,
    count INTEGER NOT NULL, PRIMARY KEY (event, provider, kind, outcome)
) WITHOUT ROWID;
CREATE TABLE usage (
    day TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (day, kind, name)
) WITHOUT ROWID;
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in TABLES.split(";\n"):
        if statement.strip():
            db.execute_sql(statement)
