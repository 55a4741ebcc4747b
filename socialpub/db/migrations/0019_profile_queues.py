"""A wait of a profile's queue is one row, and the next due delivery is found without reading the others.

The claim of each queued delivery used to write down the same wait: 2,000 writes for each window of a rate limit. The
oldest due delivery was found by sorting all that were due.

Now a delivery knows what its next step waits on (`waits_on`), and the index keeps the queue of each profile in one line
per value of it. A line whose endpoint must not be called is skipped as a whole.

- `turn_at` is the time that orders a line: `due_at`. A clock that was set back may leave an earlier `run_at`; that one
  counts then, so that `turn_at <= now` finds everything that is due.
- `first_endpoint` is the endpoint of the first step, as long as no claim has stored a plan.
- `waits_on` is the endpoint of the next step. It begins with `+` when the wait between two posts of a profile applies,
  too: before the first step and before the commit. It is empty for what ends without a call.
- `not_before.outlasts`: what was due, or has begun, before this instant would wait longer than `give_up_after`.
"""

ENDPOINT = """CASE WHEN json_extract(progress, '$.reading_back') THEN 'read_back'
    WHEN plan IS NULL THEN ifnull(first_endpoint, 'start')
    ELSE substr(json_extract(plan, '$[' || step || '][0]'), 1,
        instr(json_extract(plan, '$[' || step || '][0]') || ':', ':') - 1) END"""
BEGINS_OR_COMMITS = """started_at IS NULL OR (NOT ifnull(json_extract(progress, '$.reading_back'), 0)
    AND json_extract(plan, '$[' || step || '][1]') = 'commit')"""
ENDS = """json_extract(progress, '$.stopped') AND NOT ifnull(json_extract(progress, '$.reading_back'), 0)
    AND ifnull(json_extract(plan, '$[' || step || '][1]'), '') <> 'poll'"""

STATEMENTS = (
    "ALTER TABLE delivery ADD COLUMN first_endpoint TEXT",
    "ALTER TABLE delivery ADD COLUMN turn_at TEXT GENERATED ALWAYS AS (min(due_at, run_at)) VIRTUAL",
    f"""ALTER TABLE delivery ADD COLUMN waits_on TEXT GENERATED ALWAYS AS (
        CASE WHEN {ENDS} THEN '' ELSE iif({BEGINS_OR_COMMITS}, '+', '') || {ENDPOINT} END) VIRTUAL""",
    """CREATE INDEX delivery_queue ON delivery (profile_id, waits_on, next_scope, turn_at, id, run_at)
        WHERE state = 'queued'""",
    "ALTER TABLE not_before ADD COLUMN outlasts TEXT",
)


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS:
        db.execute_sql(statement)
