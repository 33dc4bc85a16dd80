// A published language model on the site. Its file comes in parts when the reader asks for it, never before; the
// browser keeps them, and a worker computes with them, which all widgets of a class on the page share.
import ENGINE from "../engine/language.js" with { type: "text" };
import { start } from "../engine/client.js";

const KEPT = "attnbook-model", TRIES = 3;

// What the site says of the model: { folder, bytes, parts: [sha256, bytes] .. }. Undefined, if the site has none.
export function offered() {
  const told = document.querySelector("script.attnbook-model");
  return told ? JSON.parse(told.textContent) : undefined;
}

async function sumOf(part) {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", part));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
// Fills a part with what an answer brings; `came` is told how many bytes have come with each piece.
async function fill(part, { body }, came = () => {}) {
  const reader = body.getReader();
  let at = 0;
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    part.set(piece.value.subarray(0, part.length - at), at);
    at = Math.min(part.length, at + piece.value.length);
    came(piece.value.length);
  }
}
// A body that is read from where it lies: of any other the browser makes a copy, which stays for a while.
const streamed = (part) => new ReadableStream({
  start(body) {
    body.enqueue(part);
    body.close();
  },
});
// Fills a part from the browser's cache or from the site; one whose sum is wrong is fetched again.
async function fetchPart(part, folder, sum, came) {
  const address = new URL(`${folder}${sum}.bin`, document.baseURI).href;
  const cache = await caches.open(KEPT).catch(() => null), kept = await cache?.match(address);
  if (kept) {
    await fill(part, kept);
    if ((await sumOf(part)) === sum) return;
  }
  for (let tries = 0; tries < TRIES; tries++) {
    const response = await fetch(address, { cache: "no-store" }); // this cache has no room for it twice
    if (!response.ok) throw new Error(`the site answers ${response.status}`);
    let size = 0;
    await fill(part, response, (more) => came(more, (size += more)));
    if ((await sumOf(part)) === sum) {
      await cache?.put(address, new Response(streamed(part))).catch(() => {}); // no room: it comes again next time
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

  // `changed` is called whenever the stage, the bytes that came or the reason of a failure have changed.
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
      let room = new ArrayBuffer(Math.max(...parts.map(([, size]) => size))); // of one part after another
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

  // Token ids of a text; `special`: whether its special tokens are read as such.
  encode(text, special = false) {
    return this.engine.call("encode", { text, special });
  }
  // What may follow ids: all tokens, the likeliest first, and their log-probabilities, { order, logp }. The model reads
  // slice by slice, and `heard` is told how many tokens; a newer question stops it, and undefined is given.
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
