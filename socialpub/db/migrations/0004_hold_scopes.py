"""Give a hold a scope: read-backs and polls, or one step of a plan, while other steps continue.

The scope of a delivery's next step is a column that SQLite computes from the plan, so a queue can skip held deliveries.
"""

AN_UNKNOWN_OUTCOME = """
    UPDATE delivery SET committed_at = json_extract(progress, '$.since'),
        progress = json_set(progress, '$.reading_back', json('true'), '$.looks', 0)
    WHERE state IN ('queued', 'running') AND committed_at IS NULL AND json_extract(progress, '$.commits') > 0
        AND NOT json_extract(progress, '$.reading_back')"""
"""The former version cleared the mark of the first call after two minutes of read-backs. These calls are read back."""

WAITS_OF_A_DAY = """
    UPDATE not_before SET until = min(until, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 day'))
    WHERE endpoint <> 'commit'"""
"""No wait is longer than a day."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("ALTER TABLE hold RENAME TO hold_of_network")
    db.execute_sql(
        """CREATE TABLE hold (
            provider TEXT NOT NULL, scope TEXT NOT NULL, reason TEXT NOT NULL, code TEXT, since TEXT NOT NULL,
            probe_at TEXT NOT NULL, PRIMARY KEY (provider, scope)
        ) WITHOUT ROWID"""
    )
    db.execute_sql(
        """INSERT INTO hold (provider, scope, reason, code, since, probe_at)
            SELECT provider, '', reason, code, since, probe_at FROM hold_of_network"""
    )
    db.execute_sql("DROP TABLE hold_of_network")
    db.execute_sql(AN_UNKNOWN_OUTCOME)
    db.execute_sql(WAITS_OF_A_DAY)
    db.execute_sql(
        """ALTER TABLE delivery ADD COLUMN next_scope TEXT GENERATED ALWAYS AS (
            CASE WHEN json_extract(progress, '$.reading_back') THEN 'questions'
                WHEN plan IS NULL THEN 'start'
                WHEN json_extract(plan, '$[' || step || '][1]') = 'poll' THEN 'questions'
                WHEN instr(json_extract(plan, '$[' || step || '][0]'), ':') THEN
                    substr(json_extract(plan, '$[' || step || '][0]'), 1,
                        instr(json_extract(plan, '$[' || step || '][0]'), ':') - 1)
                ELSE json_extract(plan, '$[' || step || '][0]') END) VIRTUAL"""
    )
