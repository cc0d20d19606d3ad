"""Runs the program as a client for the measuring scripts: starts it, reads its events, sends it signals."""

import json
import os
import signal
import subprocess
import threading
import time

from nodes import BINARY


def boot_time():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Tool:
    """A process of `quorate hold` or `quorate run`, and the events that it has printed so far."""

    def __init__(self, urls, args):
        environment = {**os.environ, "QUORATE_URL": urls}
        self.process = subprocess.Popen([BINARY, *args], env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.events, self.changed = [], threading.Condition()
        for stream in [self.process.stdout, self.process.stderr]:
            threading.Thread(target=self.read, args=[stream], daemon=True).start()

    def read(self, stream):
        for line in stream:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            with self.changed:
                self.events.append((boot_time(), event))
                self.changed.notify_all()

    def event(self, name, seconds=60):
        """Waits for the first event of this name. Returns the moment at which it was read, and the event."""
        find = lambda: next((seen for seen in self.events if seen[1].get("event") == name), None)
        with self.changed:
            assert self.changed.wait_for(find, seconds), f"no {name} in {seconds} s: {self.events}"
            return find()

    def authority_ends(self):
        """When its authority ends, by the last event that extended it. The lease itself lasts TTL / 5 longer."""
        granted = [event for _, event in self.events if event["event"] in ("leader", "renewed")][-1]
        return (granted["authority_observed_continuous_ms"] + granted["authority_remaining_ms"]) / 1000

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        return self.process.wait()
