"""The current schema as peewee models, one for each table.

`db/migrations` creates and changes the tables. A test compares the models with a migrated database. Rare statements are
peewee queries over these models. Frequent statements read and write rows by their key (`Database.insert`, `update` and
`get`): a peewee query takes 90 to 200 µs of processor time, and these take 6 to 9 µs. Columns that end in `_at` are
stamps (`core/clock.py`).
"""

import json
from collections.abc import Collection
from typing import Any

from peewee import (
    SQL,
    AutoField,
    BlobField,
    CompositeKey,
    FloatField,
    IntegerField,
    Model,
    Node,
    SqliteDatabase,
    TextField,
)

from socialpub.db.states import ProfileStatus

_UNIQUE: list[Node] = [SQL("UNIQUE")]
_ZERO: list[Node] = [SQL("DEFAULT 0")]
_EMPTY: list[Node] = [SQL("DEFAULT ''")]
_EMPTY_OBJECT: list[Node] = [SQL("DEFAULT '{}'")]
_COMPUTED: list[Node] = [SQL("GENERATED ALWAYS AS (NULL) VIRTUAL")]
"""SQLite computes the value. The migration that creates the column contains the expression."""


def _indexes(*descriptions: str) -> list[SQL]:
    return [SQL(f"CREATE {description}") for description in descriptions]


def _table_name(model: type[Model]) -> str:
    """`ApiKeyRow` is a row of `api_key`."""
    name = model.__name__.removesuffix("Row")
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")


class Flag(IntegerField):
    """A boolean as 0 or 1."""

    def python_value(self, value: int) -> bool:
        return bool(value)


class Json(TextField):
    def db_value(self, value: Any) -> str | None:
        return None if value is None else json.dumps(value, ensure_ascii=False)

    def python_value(self, value: str | None) -> Any:
        return None if value is None else json.loads(value)


class Words(TextField):
    """A set of words, separated by spaces."""

    def db_value(self, value: Collection[str]) -> str:
        return " ".join(sorted(value))

    def python_value(self, value: str) -> frozenset[str]:
        return frozenset(value.split())


class TableRow(Model):
    class Meta:
        database = SqliteDatabase(None)  # compiles queries, which `Database` runs
        table_function = _table_name


class KeyedRow(TableRow):
    """A row of a table WITHOUT ROWID, which SQLite stores in the order of its primary key."""

    class Meta:
        table_settings = ("WITHOUT ROWID",)


# --- posts -----------------------------------------------------------------------------------------------------------


class PostRow(TableRow):
    id = TextField(primary_key=True)
    status = TextField()
    """A `PostStatus`."""
    body = TextField(null=True)
    created_at = TextField()
    updated_at = TextField()
    scheduled_at = TextField(null=True)
    canceled_at = TextField(null=True)
    audience_id = IntegerField()
    outcomes = TextField(constraints=_EMPTY)
    """A letter for each delivery (`states.OUTCOME_LETTERS`)."""
    restore_count = IntegerField(constraints=_ZERO)
    """The number of restores of the database when the post was accepted or last confirmed."""
    text_version = IntegerField(constraints=_ZERO)
    """The version of `body`. An edit begins a new version if log entries show the former text."""
    key_id = TextField(null=True)
    """The key that created the post, or `owner`."""

    class Meta:
        indexes = _indexes(
            "INDEX post_newest ON post (created_at, id, audience_id, status, outcomes, scheduled_at)",
            "INDEX post_groups ON post (status, audience_id, outcomes)",
            "INDEX post_scheduled ON post (scheduled_at, audience_id, status, outcomes) WHERE scheduled_at IS NOT NULL",
        )


class FormerTextRow(KeyedRow):
    """A former text of a post, for the log entries of that version."""

    post_id = TextField()
    version = IntegerField()
    body = TextField(null=True)

    class Meta:
        primary_key = CompositeKey("post_id", "version")


class MediaRow(TableRow):
    id = TextField(primary_key=True)
    post_id = TextField()
    position = IntegerField()
    artifact_id = TextField()
    alt = TextField(null=True)

    class Meta:
        indexes = _indexes(
            "INDEX media_of_post ON media (post_id, position)",
            "INDEX media_of_artifact ON media (artifact_id)",
        )


class AudienceRow(TableRow):
    id = AutoField()
    members = TextField(constraints=_UNIQUE)


class AudienceMemberRow(KeyedRow):
    audience_id = IntegerField()
    profile_id = TextField()
    provider = TextField()
    position = IntegerField(constraints=_ZERO)

    class Meta:
        primary_key = CompositeKey("audience_id", "profile_id")
        indexes = _indexes("INDEX audience_of_profile ON audience_member (profile_id)")


class IdempotencyRow(KeyedRow):
    key_id = TextField()
    key = TextField()
    fingerprint = TextField()
    created_at = TextField()
    status = IntegerField()
    location = TextField(null=True)
    body = BlobField(null=True)

    class Meta:
        primary_key = CompositeKey("key_id", "key")
        indexes = _indexes("INDEX idempotency_age ON idempotency (created_at)")


# --- deliveries ------------------------------------------------------------------------------------------------------


class DeliveryRow(TableRow):
    id = TextField(primary_key=True)
    post_id = TextField()
    position = IntegerField()
    profile_id = TextField()
    provider = TextField()
    profile_name = TextField()
    """The name of the profile. It follows a new name until the delivery ends."""
    account_id = TextField()
    state = TextField()
    """A `State`."""
    options = TextField()
    scheduled_at = TextField(null=True)
    published_at = TextField(null=True)
    failed_at = TextField(null=True)
    provider_post_id = TextField(null=True)
    url = TextField(null=True)
    error_message = TextField(null=True)
    due_at = TextField()
    run_at = TextField()
    started_at = TextField(null=True)
    owner = TextField(null=True)
    plan = TextField(null=True)
    step = IntegerField(constraints=_ZERO)
    memo = TextField(constraints=_EMPTY_OBJECT)
    progress = TextField(constraints=_EMPTY_OBJECT)
    committed_at = TextField(null=True)
    content_key = TextField()
    retry_of = TextField(null=True)
    first_endpoint = TextField(null=True)
    turn_at = TextField(null=True, constraints=_COMPUTED)
    content_refused = IntegerField(constraints=_ZERO)
    phase = TextField(null=True, constraints=_COMPUTED)
    """A `PhaseName`."""
    line = TextField(null=True, constraints=_COMPUTED)
    """The endpoint of the next step, after `+` for a call that publishes, `?` for a query, or `-`."""
    reply_to = TextField(null=True)
    """The first delivery of the post to which this delivery replies."""

    class Meta:
        indexes = _indexes(
            "INDEX delivery_of_post ON delivery (post_id, position)",
            "INDEX delivery_due ON delivery (run_at) WHERE state = 'queued'",
            "INDEX delivery_running ON delivery (profile_id) WHERE state = 'running'",
            "INDEX delivery_lane ON delivery (profile_id, run_at) WHERE state = 'queued'",
            "INDEX delivery_equal ON delivery (profile_id, content_key, committed_at) "
            "WHERE state IN ('queued', 'running')",
            "UNIQUE INDEX delivery_provider_post ON delivery (provider, account_id, provider_post_id) "
            "WHERE provider_post_id IS NOT NULL",
            "INDEX delivery_without_id ON delivery (published_at) "
            "WHERE state = 'published' AND provider_post_id IS NULL",
            "INDEX delivery_retries ON delivery (retry_of) WHERE retry_of IS NOT NULL",
            "INDEX delivery_failed ON delivery (failed_at) WHERE failed_at IS NOT NULL",
            "INDEX delivery_queue ON delivery (profile_id, line, turn_at, id, run_at) WHERE state = 'queued'",
            "INDEX delivery_stopped ON delivery (profile_id) "
            "WHERE state = 'queued' AND json_extract(progress, '$.stopped') IS NOT NULL",
            "INDEX delivery_replies ON delivery (reply_to) WHERE reply_to IS NOT NULL",
        )

    @property
    def first_id(self) -> str:
        """The first delivery among this delivery's retries. Every retry and every reply refers to the first one."""
        return str(self.retry_of or self.id)


# SQLite uses a partial index only if the state is in the SQL text.
IS_QUEUED = DeliveryRow.state == SQL("'queued'")
IS_RUNNING = DeliveryRow.state == SQL("'running'")
IS_OPEN = DeliveryRow.state.in_((SQL("'queued'"), SQL("'running'")))


class AttemptRow(TableRow):
    n = AutoField()
    delivery_id = TextField()
    profile_id = TextField()
    provider = TextField()
    step = TextField()
    started_at = TextField()
    ended_at = TextField(null=True)
    outcome = TextField()
    message = TextField(null=True)
    provider_code = TextField(null=True)
    request_id = TextField(null=True)
    next_at = TextField(null=True)

    class Meta:
        indexes = _indexes("INDEX attempt_of_delivery ON attempt (delivery_id)")


class LogEntryRow(TableRow):
    n = AutoField()
    id = TextField()
    delivery_id = TextField()
    post_id = TextField()
    profile_id = TextField()
    provider = TextField()
    type = TextField()
    occurred_at = TextField()
    post_scheduled_at = TextField(null=True)
    profile_name = TextField(null=True)
    release_url = TextField(null=True)
    provider_post_id = TextField(null=True)
    error_message = TextField(null=True)
    ends_post = IntegerField(constraints=_ZERO)
    """1: this entry settled or canceled its post."""
    text_version = IntegerField()
    """The post's `text_version` at that time."""

    class Meta:
        indexes = _indexes(
            "INDEX log_entry_of_profile ON log_entry (profile_id, n)",
            "INDEX log_entry_by_id ON log_entry (id)",
            "INDEX log_entry_rare ON log_entry (type, n) WHERE type IN ('failed', 'canceled')",
            "INDEX log_entry_message ON log_entry (n, error_message) WHERE error_message IS NOT NULL",
        )


class StoredWaitRow(KeyedRow):
    """A wait that no other row states. The view `wait` has the others."""

    subject = TextField()
    """A network, a profile or a delivery."""
    reason = TextField()
    """A `WaitReason`."""
    calls = TextField()
    """The calls that wait: a group of calls, an endpoint, or '' for all."""
    since = TextField()
    until = TextField(null=True)
    """None: an event ends the wait."""
    message = TextField(null=True)
    """The words of the network, or the sentence of the wait."""
    code = TextField(null=True)
    key_name = TextField(null=True)
    """The API key that created or changed a post that waits for approval."""

    class Meta:
        primary_key = CompositeKey("subject", "reason", "calls", "since")


# --- artifacts -------------------------------------------------------------------------------------------------------


class ArtifactRow(TableRow):
    id = TextField(primary_key=True)
    status = TextField()
    """An `ArtifactStatus`."""
    file_name = TextField()
    declared_type = TextField()
    declared_bytes = IntegerField()
    created_at = TextField()
    generation = IntegerField(constraints=_ZERO)
    stored_generation = IntegerField(null=True)
    etag = TextField(null=True)
    kind = TextField(null=True)
    mime_type = TextField(null=True)
    size_bytes = IntegerField(null=True)
    storage_key = TextField(null=True, constraints=_UNIQUE)
    facts = TextField(null=True)
    verified_at = TextField(null=True)
    reason = TextField(null=True)
    removed_at = TextField(null=True)
    dropped_at = TextField(null=True)

    class Meta:
        indexes = _indexes(
            "INDEX artifact_unsettled ON artifact (created_at) WHERE status = 'reserved'",
            "INDEX artifact_verified ON artifact (verified_at) WHERE status = 'verified' AND removed_at IS NULL",
        )


class StoredMediaRow(TableRow):
    files = IntegerField()
    size_bytes = IntegerField()

    class Meta:
        primary_key = False


# --- profiles and keys -----------------------------------------------------------------------------------------------


class ProfileRow(TableRow):
    id = TextField(primary_key=True)
    provider = TextField()
    account_id = TextField()
    name = TextField()
    status = TextField()
    """A `ProfileStatus`."""
    username = TextField(null=True)
    picture_url = TextField(null=True)
    expires_at = TextField(null=True)
    posts_count = IntegerField(constraints=_ZERO)
    created_at = TextField()
    updated_at = TextField()
    access_token = BlobField(null=True)
    refresh_token = BlobField(null=True)
    access_expires_at = TextField(null=True)
    refresh_expires_at = TextField(null=True)
    scopes = Words(constraints=_EMPTY)
    facts = Json(constraints=_EMPTY_OBJECT)
    options = Json(constraints=_EMPTY_OBJECT)
    reason = TextField(null=True)
    disconnected_at = TextField(null=True)
    renewed_at = TextField(null=True)
    account_name = TextField(null=True)
    """The network's name of the account. The profile's name follows it until the owner changes the profile's name."""
    account_read_at = TextField(null=True)

    class Meta:
        indexes = _indexes(
            "UNIQUE INDEX profile_account ON profile (provider, account_id) WHERE status <> 'disconnected'"
        )

    @property
    def is_connected(self) -> bool:
        return bool(self.status != ProfileStatus.DISCONNECTED)

    @property
    def renewable(self) -> bool:
        """Whether the appliance can renew the access token without the owner."""
        return self.refresh_token is not None

    @property
    def issued_at(self) -> str:
        """When the network last issued tokens."""
        return str(self.renewed_at or self.created_at)


class ChoiceLabelRow(KeyedRow):
    profile_id = TextField()
    key = TextField()
    value = TextField()
    label = TextField()

    class Meta:
        primary_key = CompositeKey("profile_id", "key", "value")


class ConsentRow(KeyedRow):
    id = TextField(primary_key=True)
    state_hash = BlobField(constraints=_UNIQUE)
    provider = TextField()
    verifier = BlobField()
    redirect_uri = TextField()
    name = TextField(null=True)
    expected_profile_id = TextField(null=True)
    created_at = TextField()
    expires_at = TextField()
    taken_at = TextField(null=True)
    """When the browser returned. Afterwards, the state is not valid."""
    finished_at = TextField(null=True)
    profile_id = TextField(null=True)
    revived = IntegerField(null=True)
    missing = TextField(null=True)
    error = TextField(null=True)
    hint = TextField(null=True)
    door = TextField(constraints=[SQL("DEFAULT 'shell'")])

    class Meta:
        indexes = _indexes("INDEX consent_age ON consent (created_at)")


class ApiKeyRow(KeyedRow):
    id = TextField(primary_key=True)
    name = TextField()
    scope = TextField()
    secret_hash = BlobField()
    providers = Json(null=True)
    profiles = Json(null=True)
    created_at = TextField()
    expires_at = TextField(null=True)
    revoked_at = TextField(null=True)
    last_used_at = TextField(null=True)
    posts_per_day = IntegerField(null=True)
    approval = Flag(constraints=_ZERO)

    def state(self, now: str) -> str:
        """`active`, `revoked` or `expired`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"


class KeyUseRow(KeyedRow):
    """A post that a key with a daily limit created. `profiles` is the number of its profiles."""

    key_id = TextField()
    accepted_at = TextField()
    post_id = TextField()
    profiles = IntegerField()

    class Meta:
        primary_key = CompositeKey("key_id", "accepted_at", "post_id")


class SessionRow(KeyedRow):
    id = TextField(primary_key=True)
    token_hash = BlobField(constraints=_UNIQUE)
    instance_id = TextField()
    created_at = TextField()
    last_seen_at = TextField()
    address = TextField()
    user_agent = TextField()


class SignInLinkRow(KeyedRow):
    token_hash = BlobField(primary_key=True)
    instance_id = TextField()
    purpose = TextField()
    created_at = TextField()
    expires_at = TextField()


# --- the appliance ---------------------------------------------------------------------------------------------------


class ApplianceRow(KeyedRow):
    name = TextField(primary_key=True)
    value = TextField()


class TrailRow(TableRow):
    """An entry of the audit log."""

    id = AutoField()
    at = TextField()
    actor = TextField()
    action = TextField()
    subject_kind = TextField(null=True)
    subject_id = TextField(null=True)
    subject_label = TextField(null=True)
    detail = Json(constraints=_EMPTY_OBJECT)

    class Meta:
        indexes = _indexes(
            "INDEX trail_by_action ON trail (action, id)",
            "INDEX trail_by_subject ON trail (subject_id, id)",
        )


class NotificationRow(TableRow):
    id = AutoField()
    at = TextField()
    title = TextField()
    body = TextField()


class NotificationServiceRow(KeyedRow):
    id = TextField(primary_key=True)
    name = TextField()
    """The scheme and the host of the service's URL."""
    sent_through = IntegerField()
    """The id of the last message that was sent to the service."""
    sent_at = TextField(null=True)
    failing_since = TextField(null=True)
    next_at = TextField(null=True)
    failure = TextField(null=True)
    """Why the last try failed."""
    sent = IntegerField(constraints=_ZERO)
    """The number of messages that the service accepted."""
    failed = IntegerField(constraints=_ZERO)
    """The number of failed tries."""
    waiting: int
    """The number of messages that were not sent yet. Not a column: `notifications.services` counts the messages."""


class NotifyAddressRow(KeyedRow):
    id = TextField(primary_key=True)
    name = TextField()
    url = BlobField()
    """Sealed."""
    added_at = TextField()


class WebhookRow(KeyedRow):
    """An address that gets events of the log."""

    id = TextField(primary_key=True)
    name = TextField()
    """The scheme and the host of the URL."""
    url = BlobField()
    """Sealed."""
    secret = BlobField()
    """Sealed."""
    events = Json()
    added_at = TextField()
    sent_through = IntegerField()
    """The number of the last log entry that needs no further call."""
    tries = IntegerField(constraints=_ZERO)
    """The number of failed tries since the last accepted event."""
    next_at = TextField(null=True)
    failing_since = TextField(null=True)
    last_response = TextField(null=True)
    """The status of the last response, or why there was none."""
    last_response_at = TextField(null=True)
    accepted = IntegerField(constraints=_ZERO)
    """The number of events that the address accepted."""
    failed = IntegerField(constraints=_ZERO)
    """The number of failed tries."""
    left_out = IntegerField(constraints=_ZERO)
    """The number of events that became too old."""
    left_out_at = TextField(null=True)
    disabled_at = TextField(null=True)
    """When the address answered 410."""


class AlertRow(KeyedRow):
    """An alert of which the owner is or will be notified."""

    key = TextField(primary_key=True)
    kind = TextField()
    sentence = TextField()
    is_event = Flag()
    since = TextField()
    """When the problem began."""
    sent_at = TextField(null=True)
    """When the owner was last notified."""
    ended_at = TextField(null=True)
    """When the problem ended."""


# --- counters --------------------------------------------------------------------------------------------------------


class EventCountRow(KeyedRow):
    event = TextField()
    provider = TextField()
    kind = TextField()
    outcome = TextField()
    count = IntegerField()

    class Meta:
        primary_key = CompositeKey("event", "provider", "kind", "outcome")


class DeliveryCountRow(KeyedRow):
    provider = TextField()
    outcome = TextField()
    deliveries = IntegerField()

    class Meta:
        primary_key = CompositeKey("provider", "outcome")


class SendingDelayRow(KeyedRow):
    provider = TextField()
    bucket = FloatField()
    deliveries = IntegerField()
    seconds = FloatField()

    class Meta:
        primary_key = CompositeKey("provider", "bucket")


class UsageRow(KeyedRow):
    day = TextField()
    kind = TextField()
    name = TextField()
    count = IntegerField()

    class Meta:
        primary_key = CompositeKey("day", "kind", "name")
