"""Bind sealed tokens to their row and column, so a copied token cannot be opened in another place.

Tokens and upload URLs of the former version are sealed again. A value that this `secret.key` cannot open stays
unchanged.
"""

PLACES = (("profile", "access_token"), ("profile", "refresh_token"), ("consent", "verifier"))

TOKENS = "UPDATE {0} SET {1} = reseal({1}, '{0}', id, '{1}') WHERE length({1}) > 0"

MEMOS = """
    UPDATE delivery
    SET memo = json_set(memo, '$.upload.address', CAST(
        reseal(CAST(json_extract(memo, '$.upload.address') AS BLOB), 'delivery', id, 'memo') AS TEXT))
    WHERE json_type(memo, '$.upload.address') = 'text'"""
"""The upload URL of a TikTok video."""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for table, column in PLACES:
        db.execute_sql(TOKENS.format(table, column))
    db.execute_sql(MEMOS)
