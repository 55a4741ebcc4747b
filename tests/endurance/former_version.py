"""Two versions for a machine, made of this one: 1.0.0 knows one unit and one key of the configuration less, and the
version after it one migration more.
"""

FORMER = "1.0.0"
NEXT_MIGRATION = "9001_next"
MISSING_UNIT, MISSING_KEY = "socialpub-backup.timer", "failed_keys_per_minute"

MAKE_FORMER = f"""
import pathlib, re
programs = pathlib.Path("/opt/socialpub")
present = (programs / ".venv").resolve()
former = present.rename(present.with_name("{FORMER}"))
(programs / ".venv").unlink()
(programs / ".venv").symlink_to("environments/{FORMER}")
script = former / "bin/socialpub"
script.write_text(script.read_text().replace(present.name, "{FORMER}"))
(site,) = former.glob("lib/python3*/site-packages")
(metadata,) = site.glob("socialpub-*.dist-info/METADATA")
metadata.write_text(re.sub("(?m)^Version: .*$", "Version: {FORMER}", metadata.read_text()))
(site / "socialpub/cli/examples/{MISSING_UNIT}").unlink()
for module in site.glob("socialpub/**/*.py"):
    if "{MISSING_KEY}" in module.read_text():
        module.write_text(module.read_text().replace("{MISSING_KEY}", "wrong_keys_per_minute"))
"""
"""A program for the machine's Python: what `install-service` has just installed becomes the former version."""

MAKE_NEXT = f"""
import pathlib
(folder,) = pathlib.Path("/opt/socialpub/.venv").resolve().glob("lib/python3*/site-packages/socialpub/db/migrations")
lines = ["def up(_migrator, db):", "    db.execute_sql('CREATE TABLE extra (n INTEGER)')", ""]
(folder / "{NEXT_MIGRATION}.py").write_text(chr(10).join(lines))
"""
"""The same for the version that was installed over it, before its first start."""

APPLIED = """
import sqlite3
for row in sqlite3.connect("file:/var/lib/socialpub/socialpub.db?immutable=1", uri=True).execute(
    "SELECT name FROM schema_migration"
):
    print(*row)
"""
"""Prints the migrations of a database that no process has open."""
