"""A hold has a scope: questions may be held while posting goes on, or one step of a network's plans.

What a delivery does next is a column, computed from its plan, so that the lane of a profile can pass what is held.
"""


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
