"""Find posts by the outcomes of their deliveries, link retries, and count the delay from due to sent.

A post has one letter per delivery (`State.letter`), in the order of the profiles' ids. Counters by audience, status and
letters keep a total a short sum. The index contains the letters between status and time.
"""

STATEMENTS = """
ALTER TABLE post ADD COLUMN outcomes TEXT NOT NULL DEFAULT '';
UPDATE post SET outcomes = (SELECT ifnull(group_concat(letter, ''), '') FROM (
    SELECT CASE state WHEN 'published' THEN 'p' WHEN 'failed' THEN 'f' WHEN 'unconfirmed' THEN 'u'
        WHEN 'canceled' THEN 'c' ELSE '.' END AS letter
    FROM delivery WHERE post_id = post.id ORDER BY profile_id));

ALTER TABLE audience_member ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
UPDATE audience_member SET position = (SELECT count(*) FROM audience_member b
    WHERE b.audience_id = audience_member.audience_id AND b.profile_id < audience_member.profile_id);

DROP TABLE audience_count;
CREATE TABLE audience_count (
    audience_id INTEGER NOT NULL, status TEXT NOT NULL, outcomes TEXT NOT NULL, posts INTEGER NOT NULL,
    PRIMARY KEY (audience_id, status, outcomes)
) WITHOUT ROWID;
INSERT INTO audience_count (audience_id, status, outcomes, posts)
    SELECT audience_id, status, outcomes, count(*) FROM post GROUP BY 1, 2, 3;

DROP INDEX post_by_audience_and_status;
CREATE INDEX post_by_outcomes ON post (audience_id, status, outcomes, created_at, id);

-- The first of the deliveries that all try the same for the same profile.
ALTER TABLE delivery ADD COLUMN retry_of TEXT;
CREATE INDEX delivery_retries ON delivery (retry_of) WHERE retry_of IS NOT NULL;

-- How many published deliveries were sent so many seconds after their time: at most `bucket`, above the one before it.
CREATE TABLE sending_delay (
    provider TEXT NOT NULL, bucket REAL NOT NULL, deliveries INTEGER NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (provider, bucket)
) WITHOUT ROWID;
"""


def up(_migrator, db):  # type: ignore[no-untyped-def]
    for statement in STATEMENTS.split(";\n"):
        if statement.strip():
            db.execute_sql(statement)
