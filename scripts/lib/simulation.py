"""Builds the simulation (tests/simulation/) and runs its seeds, each in a process of its own."""

import json
import os
import subprocess

# A seed takes a few seconds. If it takes longer than this, it hangs.
SECONDS_MAX = 300
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def build(*arguments, root=ROOT):
    """Builds the program that runs seeds, and returns its path. Tokio accepts a seed only with this flag."""
    return build_tests("--profile=simulation", "--test=simulation", *arguments, root=root,
                       RUSTFLAGS="--cfg tokio_unstable")["simulation"]


def build_tests(*arguments, root=ROOT, **variables):
    """Builds the tests of the tree at `root`, and returns the path of each test program by its name."""
    command = ["cargo", "test", "--locked", "--no-run", "--message-format=json", *arguments]
    environment = dict(os.environ, **variables)
    built = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    return {message["target"]["name"]: message["executable"] for message in messages
            if message.get("executable") and message["profile"]["test"]}


def run(program, seed, **variables):
    """Runs a seed. Returns its outcome, or None if the seed did not come to its end, and everything that it printed."""
    environment = dict(os.environ, QUORATE_SIMULATION_SEED=str(seed), **variables)
    command = [program, "--exact", "one_seed", "--nocapture"]
    try:
        ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired as stuck:
        return None, f"seed {seed} did not end in {SECONDS_MAX} s\n{stuck.stdout or ''}"
    lines = ran.stdout.splitlines()
    outcome = next((json.loads(line) for line in lines if line.startswith("{") and '"seed"' in line), None)
    if outcome is None or (outcome["violations"] == 0) != (ran.returncode == 0):
        return None, f"seed {seed} ended with {ran.returncode}\n{ran.stdout}"
    return outcome, ran.stdout
