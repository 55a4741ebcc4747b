"""Whether a delivery failed because the post itself was refused: the same post would be refused again.

A page can then offer the owner to change the post first. The sentence of the failure says why in words, which no code
reads. Deliveries that failed before this migration count as failures that may pass.
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    db.execute_sql("ALTER TABLE delivery ADD COLUMN content_refused INTEGER NOT NULL DEFAULT 0")
