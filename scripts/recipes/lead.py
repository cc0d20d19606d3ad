#!/usr/bin/env python3
"""Leads a room and works while it leads, with Python's standard library alone. Copy this file, and call `lead`.

usage: QUORATE_URL=http://a:7400,http://b:7400,http://c:7400 [TTL=30] scripts/recipes/lead.py ROOM
Exit code 20: the leadership ended before the work did.
"""

import http.client
import json
import os
import secrets
import socket
import sys
import threading
import time
import urllib.error
import urllib.request


def now():
    """Seconds on a clock that nobody sets, and that also counts while the machine sleeps, unlike time.monotonic()."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Rejected(Exception):
    """A node has understood the request and turned it down."""

    def __init__(self, body):
        super().__init__(body.get("error"))
        self.code = body.get("code")


class Nodes:
    """Sends requests to one node after the other until one decides. The node that answered last comes first."""

    def __init__(self, urls):
        self.urls = list(urls)
        # A proxy from the environment is not for the nodes.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def post(self, path, body, deadline, key=None, wait=0):
        """Returns the answer, and the moment before its request was sent. None if no node has decided by `deadline`.
        The node may wait for the room for `wait` seconds before it answers."""
        headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
        tries = 0
        while now() < deadline:
            share = (deadline - now() - wait) / (len(self.urls) + 1)
            timeout = wait + min(max(share, 0.05), 2)
            request = urllib.request.Request(self.urls[0] + path, json.dumps(body).encode(), headers)
            sent = now()
            try:
                with self.opener.open(request, timeout=timeout) as response:
                    return json.load(response), sent
            except urllib.error.HTTPError as error:
                # 4xx except 429 is a decision. After 429 or 5xx nothing is decided: another node may do better.
                if error.code < 500 and error.code != 429:
                    raise Rejected(read_error(error)) from None
            except (OSError, ValueError, http.client.HTTPException):
                pass
            self.leave()
            tries += 1
            if tries % len(self.urls) == 0:
                time.sleep(0.1)
        return None

    def leave(self):
        """From now on another node comes first."""
        self.urls.append(self.urls.pop(0))


def read_error(error):
    try:
        return json.load(error)
    except (OSError, ValueError, http.client.HTTPException):
        return {"error": f"HTTP {error.code}"}


class Leadership:
    """What `lead` returns. Check `is_held()` right before each step that can't be undone, and send `term` with it."""

    def __init__(self, nodes, room, answer, sent):
        self.nodes, self.room = nodes, room
        self.term, self.token = answer["leader"]["term"], answer["leader_token"]
        self.over = threading.Event()
        self.take(answer, sent)
        self.keeper = threading.Thread(target=self.keep, daemon=True)
        self.keeper.start()

    def is_held(self):
        """Reads a clock and never waits, not even for a renewal that hangs. Once it is false, it stays false."""
        if now() >= self.deadline:
            self.over.set()
        return not self.over.is_set()

    def take(self, answer, sent):
        valid_for = answer["valid_for_ms"] / 1000
        self.renew_at = sent + valid_for / 3
        # The last fifth of the lease is for work in progress to end.
        self.deadline = sent + valid_for * 0.8

    def keep(self):
        while self.is_held():
            if self.over.wait(max(0, min(self.renew_at - now(), 0.05))) or now() < self.renew_at:
                continue
            try:
                renewed = self.nodes.post(f"/elections/{self.room}/renew", {"leader_token": self.token}, self.deadline)
            except Rejected as rejected:
                if rejected.code == "lease_not_current":
                    break
                # This node may have other settings than the rest, for example while they are changed one by one.
                self.nodes.leave()
                self.renew_at = now() + 0.5
                continue
            # A renewal that comes after the deadline doesn't count.
            if renewed and self.is_held():
                self.take(*renewed)
        self.over.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Gives the room up, because the work has ended."""
        held = self.is_held()
        self.over.set()
        self.keeper.join()
        if held:
            try:
                self.nodes.post(f"/elections/{self.room}/resign", {"leader_token": self.token}, now() + 2)
            except Rejected:
                pass


def lead(urls, room, candidate, ttl_seconds=30):
    """Waits until `candidate` leads the room."""
    nodes = Nodes(urls)
    # If the answer to a won campaign is lost, any node finds the lease again by this key.
    key = secrets.token_urlsafe(24)
    campaign = {"candidate_id": candidate, "ttl_seconds": ttl_seconds}
    path = f"/elections/{room}/campaign"
    while True:
        won = nodes.post(path, {**campaign, "wait_seconds": 10}, now() + 15, key, wait=10)
        if won and won[0]["status"] == "leader":
            # The room may have been won long after the request was sent, while the node waited. So the campaign is
            # sent again: the validity in this second answer counts from now.
            won = nodes.post(path, campaign, now() + 5, key)
            if won and won[0]["status"] == "leader":
                return Leadership(nodes, room, *won)


def main():
    urls = os.environ.get("QUORATE_URL", "http://127.0.0.1:7400").split(",")
    candidate = os.environ.get("CANDIDATE", f"{socket.gethostname()}:{os.getpid()}")
    with lead(urls, sys.argv[1], candidate, int(os.environ.get("TTL", "30"))) as leadership:
        while leadership.is_held():
            print(f"working under term {leadership.term}", flush=True)
            time.sleep(0.1)
    sys.exit(20)


if __name__ == "__main__":
    main()
