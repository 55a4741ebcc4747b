"""Store a wait of a profile's queue in one row, and find the next due delivery without reading the others.

Before, the claim of each queued delivery stored the same wait: 2,000 writes for each window of a rate limit. An index
has the queue of each profile, with one line for each `waits_on`. A line whose endpoint must wait is skipped.

- `turn_at` orders a line: `due_at`, or an earlier `run_at` after the clock was set back.
- `first_endpoint` is the endpoint of the first step, for a delivery without a plan.
- `waits_on` is the endpoint of the next step. It begins with `+` if the gap between two posts applies: before the first
  step and before the commit. It is empty for a delivery that ends without a call.
- `not_before.outlasts`: a delivery that is due or started before this instant would wait longer than `give_up_after`.
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
