// A published language model on the site. Its file is fetched in parts when the reader asks for it, never before; the
// browser keeps the parts, and a worker, which all widgets of a class on the page share, computes with them.
import ENGINE from "../engine/language.js" with { type: "text" };
import { start } from "../engine/client.js";

const KEPT = "attnbook-model", TRIES = 3;

// What the site says about the model: { folder, bytes, parts: [sha256, bytes] .. }; undefined if the site has none.
export function offered() {
  const told = document.querySelector("script.attnbook-model");
  return told ? JSON.parse(told.textContent) : undefined;
}

async function sumOf(part) {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", part));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
// Fills a part with the body of a response; `came` receives the number of bytes in each chunk.
async function fill(part, { body }, came = () => {}) {
  const reader = body.getReader();
  let at = 0;
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    part.set(piece.value.subarray(0, part.length - at), at);
    at = Math.min(part.length, at + piece.value.length);
    came(piece.value.length);
  }
}
// A body that is read in place: the browser would copy any other, and the copy would stay for a while.
const streamed = (part) => new ReadableStream({
  start(body) {
    body.enqueue(part);
    body.close();
  },
});
// Fills a part from the browser's cache or from the site; one with a wrong checksum is fetched again.
async function fetchPart(part, folder, sum, came) {
  const address = new URL(`${folder}${sum}.bin`, document.baseURI).href;
  const cache = await caches.open(KEPT).catch(() => null), kept = await cache?.match(address);
  if (kept) {
    await fill(part, kept);
    if ((await sumOf(part)) === sum) return;
  }
  for (let tries = 0; tries < TRIES; tries++) {
    const response = await fetch(address, { cache: "no-store" }); // the HTTP cache has no room for a second copy
    if (!response.ok) throw new Error(`the site answers ${response.status}`);
    let size = 0;
    await fill(part, response, (more) => came(more, (size += more)));
    if ((await sumOf(part)) === sum) {
      await cache?.put(address, new Response(streamed(part))).catch(() => {}); // no room: fetched again next time
      return;
    }
    came(-size);
  }
  throw new Error(`a part arrived damaged ${TRIES} times`);
}

class Language {
  constructor(site) {
    Object.assign(this, { site, stage: "away", came: 0, reason: "", told: undefined, engine: undefined });
    this.listeners = new Set();
    this.asked = undefined; // the newest question
  }

  // Calls `changed` whenever the stage, the number of bytes received or the reason for a failure changes.
  watch(changed) {
    this.listeners.add(changed);
    return () => this.listeners.delete(changed);
  }
  tell(news) {
    Object.assign(this, news);
    for (const changed of this.listeners) changed();
  }

  // Whether the browser has kept the whole file.
  async kept() {
    if (!globalThis.caches) return false;
    const addresses = this.site.parts.map(([sum]) => new URL(`${this.site.folder}${sum}.bin`, document.baseURI).href);
    const cache = await caches.open(KEPT).catch(() => null); // some browsers refuse it in a private window
    return !!cache && (await Promise.all(addresses.map((address) => cache.match(address)))).every(Boolean);
  }

  async load() {
    if (this.stage === "loading" || this.stage === "ready") return;
    const { parts, folder, bytes: total } = this.site;
    this.tell({ stage: "loading", came: 0 });
    try {
      this.engine = start(ENGINE);
      let room = new ArrayBuffer(Math.max(...parts.map(([, size]) => size))); // reused for each part
      let at = 0, told;
      for (const [sum, size] of parts) {
        const part = new Uint8Array(room, 0, size);
        await fetchPart(part, folder, sum, (more) => this.tell({ came: this.came + more }));
        const call = at ? "put" : "begin";
        const { part: { buffer }, ...found } = await this.engine.call(call, { at, total, part }, [room]);
        told ??= found;
        room = buffer;
        this.tell({ came: (at += size) });
      }
      this.tell({ stage: "ready", told });
    } catch (error) {
      this.fail(error);
    }
  }
  fail({ message }) {
    this.engine?.stop();
    this.tell({ stage: "failed", reason: message, engine: undefined });
  }

  // The token ids of a text; `special` says whether its special tokens are read as such.
  encode(text, special = false) {
    return this.engine.call("encode", { text, special });
  }
  // What may follow ids: all tokens, the likeliest first, and their log-probabilities, { order, logp }. The model reads
  // slice by slice and tells `heard` how many tokens it has read; a newer question stops it, and it returns undefined.
  async next(ids, heard) {
    const mine = (this.asked = {});
    try {
      for (;;) {
        const told = await this.engine.call("read", { ids });
        if (this.asked !== mine) return undefined;
        if (told.done) return told;
        heard?.(told.read);
      }
    } catch (error) {
      this.fail(error);
      return undefined;
    }
  }
}

let shared;
export const language = (site) => (shared ??= new Language(site));
