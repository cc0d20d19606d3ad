#!/usr/bin/env python3
"""Fencing: the database rejects the writes of an old leader that doesn't know yet that it has lost. Each row stores the
term of its last write, and rejects writes of a lower term. This is for SQLite; PostgreSQL takes the same statement.

usage: QUORATE_URL=http://a:7400,http://b:7400,http://c:7400 [TTL=30] scripts/recipes/fencing.py DATABASE ROOM CANDIDATE
Exit code 20: a write was rejected.
"""

import os
import sqlite3
import sys
import time

from lead import lead

TABLE = "CREATE TABLE IF NOT EXISTS report (id TEXT PRIMARY KEY, result TEXT NOT NULL, term BIGINT NOT NULL)"

WRITE = """
INSERT INTO report (id, result, term) VALUES (:id, :result, :term)
ON CONFLICT (id) DO UPDATE SET result = excluded.result, term = excluded.term WHERE report.term <= excluded.term
"""


def write(database, report, result, term):
    """Returns whether the write was accepted. If it was not, a later leader has written already."""
    with database:
        return database.execute(WRITE, {"id": report, "result": result, "term": term}).rowcount == 1


def main():
    path, room, candidate = sys.argv[1:]
    urls = os.environ.get("QUORATE_URL", "http://127.0.0.1:7400").split(",")
    database = sqlite3.connect(path, timeout=30)
    with database:
        database.execute(TABLE)
    with lead(urls, room, candidate, int(os.environ.get("TTL", "30"))) as leadership:
        # This doesn't check `leadership.is_held()`, on purpose: it shows what happens to a program that is paused
        # between the check and the write. A lease can't stop such a program, but the database can.
        while write(database, "nightly", f"by {candidate}", leadership.term):
            print(f"written under term {leadership.term}", flush=True)
            time.sleep(0.2)
    print(f"turned away: term {leadership.term} is over", flush=True)
    sys.exit(20)


if __name__ == "__main__":
    main()
