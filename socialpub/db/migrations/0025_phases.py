"""Store the phase of an open delivery instead of sixteen flags (`db/states.py`).

Each combination of flags becomes the phase with the same next action. Ended deliveries keep their former `progress`.

SQLite computes `phase` from `progress`. For a delivery that waits for a reconnection, it is the former phase. SQLite
computes `next_scope` and `waits_on` from `phase`.
"""

import json

PHASE = "coalesce(json_extract(progress, '$.resumes.phase'), json_extract(progress, '$.phase'), 'preparing')"
READS_BACK = """phase IN ('reading_back', 'confirming', 'closing', 'confirming_inherited', 'reading_back_inherited')"""
STEP = "json_extract(plan, '$[' || step || '][0]')"
STEP_KIND = "ifnull(json_extract(plan, '$[' || step || '][1]'), '')"
ENDPOINT = f"substr({STEP}, 1, instr({STEP} || ':', ':') - 1)"

DROP = (
    "DROP INDEX delivery_queue",
    "ALTER TABLE delivery DROP COLUMN waits_on",
    "ALTER TABLE delivery DROP COLUMN next_scope",
)
ADD = (
    f"ALTER TABLE delivery ADD COLUMN phase TEXT GENERATED ALWAYS AS ({PHASE}) VIRTUAL",
    f"""ALTER TABLE delivery ADD COLUMN next_scope TEXT GENERATED ALWAYS AS (
        CASE WHEN {READS_BACK} OR {STEP_KIND} = 'poll' THEN 'questions' WHEN plan IS NULL THEN 'start'
            ELSE {ENDPOINT} END) VIRTUAL""",
    f"""ALTER TABLE delivery ADD COLUMN waits_on TEXT GENERATED ALWAYS AS (
        CASE WHEN json_extract(progress, '$.stopped') AND NOT {READS_BACK} AND {STEP_KIND} <> 'poll' THEN ''
            ELSE iif(started_at IS NULL OR (NOT {READS_BACK} AND {STEP_KIND} = 'commit'), '+', '')
                || CASE WHEN {READS_BACK} THEN 'read_back' WHEN plan IS NULL THEN ifnull(first_endpoint, 'start')
                    ELSE {ENDPOINT} END END) VIRTUAL""",
    """CREATE INDEX delivery_queue ON delivery (profile_id, waits_on, next_scope, turn_at, id, run_at)
        WHERE state = 'queued'""",
)
OPEN_ROWS = """SELECT id, progress, plan, step, committed_at, due_at FROM delivery
    WHERE state IN ('queued', 'running') AND (progress <> '{}' OR plan IS NOT NULL)"""
STORE = "UPDATE delivery SET progress = ?, committed_at = ? WHERE id = ?"
KEPT = ("tries", "deaths", "stopped", "reconnected_at", "again")
MAYBE_SENT = "the installation that the backup was made of may have published it"


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in DROP:
        db.execute_sql(statement)
    for delivery_id, *row in db.execute_sql(OPEN_ROWS).fetchall():
        db.execute_sql(STORE, (*convert_row(*row), delivery_id))  # type: ignore[no-untyped-call]
    for statement in ADD:
        db.execute_sql(statement)


def convert_row(progress, plan, step, committed_at, due_at):  # type: ignore[no-untyped-def]
    """Return the `progress` and the `committed_at` of an open row."""
    flags = json.loads(progress)
    kinds = [kind for _, kind in json.loads(plan)] if plan else []
    if flags.get("commits") or flags.get("restored"):
        committed_at = committed_at or flags.get("since") or due_at
    return json.dumps(convert(flags, kinds, step, committed_at, due_at)), committed_at


def convert(flags: dict, kinds: list, step: int, committed_at: str | None, due_at: str) -> dict:  # type: ignore[type-arg]
    """Return the `progress` of this version. `kinds` are the kinds of the steps of the plan."""
    name = phase_of(flags, kinds, step)
    doubt = {
        "commits": flags.get("commits") or 1,
        "why": flags.get("unknown") or "the result of the call is not known",
        "since": flags.get("since") or committed_at or due_at,
        "dated_since": flags.get("dated_since"),
    }
    a_round = {"readbacks": flags.get("looks"), "read_back_seconds": flags.get("looked_seconds")}
    inherited = {"since": doubt["since"], "earlier": flags.get("earlier")}
    of_phase = {
        "preparing": {},
        "committing": {"dated_since": flags.get("dated_since")},
        "processing": {name: flags.get(name) for name in ("commits", "since", "dated_since")}
        | {"message": flags.get("closing")},
        "reading_back": doubt | a_round,
        "committing_again": doubt,
        "preparing_again": doubt,
        "confirming": doubt,
        "closing": doubt | a_round | {"message": flags.get("closing")},
        "inherited": inherited,
        "confirming_inherited": inherited,
        "reading_back_inherited": inherited
        | a_round
        | {"why": flags.get("unknown") or MAYBE_SENT, "commits": flags.get("commits"), "message": flags.get("closing")},
        "processing_inherited": {
            "since": flags.get("since"),
            "why": MAYBE_SENT if flags.get("look_first") else flags.get("unknown"),
            "commits": flags.get("commits"),
        },
    }[name]
    phase = {"phase": name} | {key: value for key, value in of_phase.items() if value}
    if flags.get("waits_for_owner"):
        phase = {"phase": "waiting_for_reconnect", "resumes": phase}
    kept = {key: flags[key] for key in KEPT if flags.get(key)}
    return kept if phase == {"phase": "preparing"} else phase | kept


def phase_of(flags: dict, kinds: list, step: int) -> str:  # type: ignore[type-arg]
    """Return the phase that these flags meant. A delivery past its commit is never read back first: the former engine
    repeated that read-back without an end."""
    reads_back = flags.get("reading_back")
    kind = kinds[step] if step < len(kinds) else "prepare"
    past_commit = "commit" in kinds and step > kinds.index("commit")
    if flags.get("look_first") and flags.get("commits"):
        return "reading_back" if reads_back else "committing_again"
    if flags.get("look_first") and not past_commit:
        return "confirming_inherited" if reads_back else "inherited"
    if flags.get("look_first") or (flags.get("restored") and past_commit and not reads_back):
        return "processing_inherited"
    if flags.get("restored"):
        return "reading_back_inherited"
    if reads_back:
        return "confirming" if flags.get("confirming") else "closing" if flags.get("closing") else "reading_back"
    if past_commit:
        return "processing"
    again = "_again" if flags.get("commits") else ""
    return f"committing{again}" if kind == "commit" else f"preparing{again}"
