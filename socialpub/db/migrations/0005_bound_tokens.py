"""Sealed tokens belong to their row and column: one that is copied to another cannot be opened there.

What the former version sealed is sealed again for the place where it lies, also the upload addresses in the memos of
deliveries on their way. What cannot be opened with this `secret.key` stays as it is, and cannot be opened later either.
"""

PLACES = (("profile", "access_token"), ("profile", "refresh_token"), ("consent", "verifier"))

TOKENS = "UPDATE {0} SET {1} = reseal({1}, '{0}', id, '{1}') WHERE length({1}) > 0"

MEMOS = """
    UPDATE delivery
    SET memo = json_set(memo, '$.upload.address', CAST(
        reseal(CAST(json_extract(memo, '$.upload.address') AS BLOB), 'delivery', id, 'memo') AS TEXT))
    WHERE json_type(memo, '$.upload.address') = 'text'"""
"""Where TikTok takes a video's bytes."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for table, column in PLACES:
        db.execute_sql(TOKENS.format(table, column))
    db.execute_sql(MEMOS)
