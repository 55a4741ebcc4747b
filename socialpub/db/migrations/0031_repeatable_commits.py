"""The queue knows a second kind of commit: `repeatable`, whose repetition cannot create a second post.

The gap between two posts of a profile applies before both kinds, so `waits_on` begins with `+` for both. The repetition
of a call does not wait for the gap.
"""

READS_BACK = """phase IN ('reading_back', 'confirming', 'closing', 'confirming_inherited', 'reading_back_inherited')"""
STEP = "json_extract(plan, '$[' || step || '][0]')"
STEP_KIND = "ifnull(json_extract(plan, '$[' || step || '][1]'), '')"
FIRST_CALL = f"{STEP_KIND} = 'commit' OR ({STEP_KIND} = 'repeatable' AND phase <> 'committing_again')"
ENDPOINT = f"substr({STEP}, 1, instr({STEP} || ':', ':') - 1)"

STATEMENTS = (
    "DROP INDEX delivery_queue",
    "ALTER TABLE delivery DROP COLUMN waits_on",
    f"""ALTER TABLE delivery ADD COLUMN waits_on TEXT GENERATED ALWAYS AS (
        CASE WHEN json_extract(progress, '$.stopped') AND NOT {READS_BACK} AND {STEP_KIND} <> 'poll' THEN ''
            ELSE iif(started_at IS NULL OR (NOT {READS_BACK} AND ({FIRST_CALL})), '+', '')
                || CASE WHEN {READS_BACK} THEN 'read_back' WHEN plan IS NULL THEN ifnull(first_endpoint, 'start')
                    ELSE {ENDPOINT} END END) VIRTUAL""",
    """CREATE INDEX delivery_queue ON delivery (profile_id, waits_on, next_scope, turn_at, id, run_at)
        WHERE state = 'queued'""",
)


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS:
        db.execute_sql(statement)
