#!/usr/bin/env node
// Leads a room and works meanwhile, with nothing but Node.js (18 or later, for fetch). To be copied: `lead` is all that
// there is to call.
//
// usage: QUORATE_URL=http://a:7400,http://b:7400,http://c:7400 [TTL=30] node scripts/recipes/lead.mjs ROOM
// Exit code 20 if leading ended before the work did.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

// Milliseconds on a clock that counts while the machine sleeps, unlike performance.now(), and that nobody sets.
const now = () => Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000;

class Refused extends Error {
  constructor(body) {
    super(body.error);
    this.code = body.code;
  }
}

// Asks one node after the other until one decides. The one that answered last is asked first.
class Nodes {
  constructor(urls) {
    this.urls = [...urls];
  }

  // The answer, and the moment before the request that was answered. Nothing if no node decided by `deadline`.
  async post(path, body, deadline, { key, hold = 0 } = {}) {
    const headers = { "content-type": "application/json", ...(key && { "idempotency-key": key }) };
    for (let tries = 1; now() < deadline; tries++) {
      const share = (deadline - now() - hold) / (this.urls.length + 1);
      const signal = AbortSignal.timeout(hold + Math.min(Math.max(Math.round(share), 50), 2000));
      const sent = now();
      try {
        const request = { method: "POST", headers, body: JSON.stringify(body), redirect: "error", signal };
        const response = await fetch(this.urls[0] + path, request);
        const answer = await response.json();
        if (response.ok) return { answer, sent };
        // 4xx is a decision. 5xx is neither a yes nor a no: another node may do better.
        if (response.status < 500 && response.status !== 429) throw new Refused(answer);
      } catch (error) {
        if (error instanceof Refused) throw error;
      }
      this.leave();
      if (tries % this.urls.length === 0) await sleep(100);
    }
  }

  // Asks another node first from now on.
  leave() {
    this.urls.push(this.urls.shift());
  }
}

// What `lead` gives. Ask `isHeld()` right before each step that can't be taken back, and send `term` along. `signal` is
// aborted when it is over: for fetch and whatever else takes an AbortSignal.
class Leadership {
  #over = new AbortController();
  #keeper;

  constructor(nodes, room, won) {
    Object.assign(this, { nodes, room, term: won.answer.leader.term });
    // Not enumerable, so that no log shows it.
    Object.defineProperty(this, "token", { value: won.answer.leader_token });
    this.signal = this.#over.signal;
    this.#take(won);
    this.#keeper = this.#keep();
  }

  // Reads a clock, and waits for nobody: neither for a renewal that hangs nor for timers of a busy event loop.
  isHeld() {
    if (now() >= this.deadline) this.#over.abort();
    return !this.signal.aborted;
  }

  #take({ answer, sent }) {
    this.renewAt = sent + answer.valid_for_ms / 3;
    // The last fifth of the lease is for what is under way to come to its end.
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
        // What comes too late doesn't bring it back.
        if (renewed && this.isHeld()) this.#take(renewed);
      } catch (refused) {
        if (refused.code === "lease_not_current") break;
        // One node may have other settings than the rest, as while they are changed on one after the other.
        this.nodes.leave();
        this.renewAt = now() + 500;
      }
    }
    clearInterval(watchdog);
    this.#over.abort();
  }

  // To be called when the work has ended.
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
  // The same key finds a lease again whose answer was lost, at any node.
  const key = randomBytes(24).toString("base64url");
  const campaign = { candidate_id: candidate, ttl_seconds: ttlSeconds };
  const path = `/elections/${room}/campaign`;
  for (;;) {
    const held = await nodes.post(path, { ...campaign, wait_seconds: 10 }, now() + 15000, { key, hold: 10000 });
    if (held?.answer.status !== "leader") continue;
    // Granted while the node held the request, perhaps long after it was sent. This answer counts from now.
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
