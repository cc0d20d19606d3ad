"""Starts release nodes on loopback addresses of their own, for the measuring scripts. Needs only the standard library."""

import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILT = os.path.join(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"), "release", "quorate")
# QUORATE_BINARY names a binary to use instead of building one.
BINARY = os.environ.get("QUORATE_BINARY", BUILT)


def build():
    if BINARY == BUILT:
        subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], cwd=ROOT, check=True)


class Node:
    def __init__(self, name, ip, folder, args):
        self.name, self.ip, self.folder, self.args = name, ip, folder, args
        self.process = None

    @property
    def url(self):
        return f"http://{self.ip}:7400"

    def start(self):
        log = open(os.path.join(self.folder, f"{self.name}.log"), "ab")
        command = [BINARY, "serve", "--name", self.name, "--listen", f"{self.ip}:7400", "--peer-listen",
                   f"{self.ip}:7401", "--data-dir", self.data_dir, "--campaigns-per-minute", "100000000", *self.args]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()

    @property
    def data_dir(self):
        return os.path.join(self.folder, self.name)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def get(self, path, timeout=2):
        return request(self.ip, "GET", path, None, timeout)

    def post(self, path, body, timeout=6):
        return request(self.ip, "POST", path, body, timeout)

    def rss_mib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) / 1024
        return 0.0

    def disk_mib(self):
        total = 0
        for folder, _, files in os.walk(self.data_dir):
            for name in files:
                try:
                    total += os.stat(os.path.join(folder, name)).st_blocks * 512
                except FileNotFoundError:
                    pass
        return total / (1 << 20)


def request(ip, method, path, body, timeout):
    connection = http.client.HTTPConnection(ip, 7400, timeout=timeout)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json"} if content else {})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null")
    finally:
        connection.close()


class Cluster:
    """Some nodes. `with Cluster(3) as cluster:` starts them, waits until they are ready, and kills them at the end."""

    def __init__(self, size, args=()):
        self.folder = tempfile.mkdtemp(prefix="quorate-")
        network = os.getpid() % 20000
        ips = [f"127.{200 + network // 1000}.{network % 250}.{place + 1}" for place in range(size)]
        args = list(args)
        if size > 1:
            secret = os.path.join(self.folder, "secret")
            with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write("only for this measurement")
            peers = ",".join(f"n{place + 1}={ip}:7401" for place, ip in enumerate(ips))
            args += ["--peers", peers, "--cluster-secret-file", secret]
        self.nodes = [Node(f"n{place + 1}", ip, self.folder, args) for place, ip in enumerate(ips)]

    def __enter__(self):
        build()
        for node in self.nodes:
            node.start()
        self.wait_ready()
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait_ready(self, nodes=None, seconds=60):
        deadline = time.monotonic() + seconds
        waiting = list(nodes or self.nodes)
        while waiting:
            if time.monotonic() > deadline:
                sys.exit(f"not ready: {[node.name for node in waiting]}; logs in {self.folder}")
            waiting = [node for node in waiting if not is_ready(node)]
            time.sleep(0.01)

    def raft_leader(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for node in self.nodes:
                try:
                    if node.process and node.get("/status")[1]["role"] == "raft_leader":
                        return node
                except OSError:
                    pass
            time.sleep(0.01)
        sys.exit("no raft leader")

    @property
    def urls(self):
        return ",".join(node.url for node in self.nodes)


def is_ready(node):
    try:
        return node.get("/readyz")[0] == 200
    except OSError:
        return False
