#!/usr/bin/env node
// Leads a room and works while it leads, with nothing but Node.js (18 or later, for fetch). Copy this file, and call
// `lead`.
//
// usage: QUORATE_URL=http://a:7400,http://b:7400,http://c:7400 [TTL=30] node scripts/recipes/lead.mjs ROOM
// Exit code 20: the leadership ended before the work did.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

// Milliseconds on a clock that nobody sets, and that also counts while the machine sleeps, unlike performance.now().
const now = () => Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000;

class Rejected extends Error {
  constructor(body) {
    super(body.error);
    this.code = body.code;
  }
}

// Sends requests to one node after the other until one decides. The node that answered last comes first.
class Nodes {
  constructor(urls) {
    this.urls = [...urls];
  }

  // Returns the answer, and the moment before its request was sent. Undefined if no node has decided by `deadline`. The
  // node may wait for the room for `wait` milliseconds before it answers.
  async post(path, body, deadline, { key, wait = 0 } = {}) {
    const headers = { "content-type": "application/json", ...(key && { "idempotency-key": key }) };
    for (let tries = 1; now() < deadline; tries++) {
      const share = (deadline - now() - wait) / (this.urls.length + 1);
      const signal = AbortSignal.timeout(wait + Math.min(Math.max(Math.round(share), 50), 2000));
      const sent = now();
      try {
        const request = { method: "POST", headers, body: JSON.stringify(body), redirect: "error", signal };
        const response = await fetch(this.urls[0] + path, request);
        const answer = await response.json();
        if (response.ok) return { answer, sent };
        // 4xx except 429 is a decision. After 429 or 5xx nothing is decided: another node may do better.
        if (response.status < 500 && response.status !== 429) throw new Rejected(answer);
      } catch (error) {
        if (error instanceof Rejected) throw error;
      }
      this.leave();
      if (tries % this.urls.length === 0) await sleep(100);
    }
  }

  // From now on another node comes first.
  leave() {
    this.urls.push(this.urls.shift());
  }
}

// What `lead` returns. Check `isHeld()` right before each step that can't be undone, and send `term` with it. `signal`
// is aborted when the leadership ends: pass it to fetch and to other functions that take an AbortSignal.
class Leadership {
  #over = new AbortController();
  #keeper;

  constructor(nodes, room, won) {
    Object.assign(this, { nodes, room, term: won.answer.leader.term });
    // The property isn't enumerable. So the token doesn't appear in a log when the object is printed.
    Object.defineProperty(this, "token", { value: won.answer.leader_token });
    this.signal = this.#over.signal;
    this.#take(won);
    this.#keeper = this.#keep();
  }

  // Reads a clock and never waits: not for a renewal that hangs, and not for the timers of a busy event loop.
  isHeld() {
    if (now() >= this.deadline) this.#over.abort();
    return !this.signal.aborted;
  }

  #take({ answer, sent }) {
    this.renewAt = sent + answer.valid_for_ms / 3;
    // The last fifth of the lease is for work in progress to end.
    this.deadline = sent + answer.valid_for_ms * 0.8;
  }

  async #keep() {
    const watchdog = setInterval(() => this.isHeld(), 50);
    while (this.isHeld()) {
      if (now() < this.renewAt) {
        await sleep(Math.min(50, Math.max(1, this.renewAt - now())));
        continue;
      }
      try {
        const body = { leader_token: this.token };
        const renewed = await this.nodes.post(`/elections/${this.room}/renew`, body, this.deadline);
        // A renewal that comes after the deadline doesn't count.
        if (renewed && this.isHeld()) this.#take(renewed);
      } catch (rejected) {
        if (rejected.code === "lease_not_current") break;
        // This node may have other settings than the rest, for example while they are changed one by one.
        this.nodes.leave();
        this.renewAt = now() + 500;
      }
    }
    clearInterval(watchdog);
    this.#over.abort();
  }

  // Gives the room up. Call it when the work has ended.
  async resign() {
    const held = this.isHeld();
    this.#over.abort();
    await this.#keeper;
    if (!held) return;
    const body = { leader_token: this.token };
    await this.nodes.post(`/elections/${this.room}/resign`, body, now() + 2000).catch(() => {});
  }
}

// Waits until `candidate` leads the room.
export async function lead({ urls, room, candidate, ttlSeconds = 30 }) {
  const nodes = new Nodes(urls);
  // If the answer to a won campaign is lost, any node finds the lease again by this key.
  const key = randomBytes(24).toString("base64url");
  const campaign = { candidate_id: candidate, ttl_seconds: ttlSeconds };
  const path = `/elections/${room}/campaign`;
  for (;;) {
    const first = await nodes.post(path, { ...campaign, wait_seconds: 10 }, now() + 15000, { key, wait: 10000 });
    if (first?.answer.status !== "leader") continue;
    // The room may have been won long after the request was sent, while the node waited. So the campaign is sent
    // again: the validity in this second answer counts from now.
    const won = await nodes.post(path, campaign, now() + 5000, { key });
    if (won?.answer.status === "leader") return new Leadership(nodes, room, won);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const leadership = await lead({
    urls: (process.env.QUORATE_URL ?? "http://127.0.0.1:7400").split(","),
    room: process.argv[2],
    candidate: process.env.CANDIDATE ?? `${hostname()}:${process.pid}`,
    ttlSeconds: Number(process.env.TTL ?? 30),
  });
  while (leadership.isHeld()) {
    console.log(`working under term ${leadership.term}`);
    await sleep(100);
  }
  await leadership.resign();
  process.exitCode = 20;
}
