// The oldest browsers that the book promises, from `browserslist` in package.json, and what they know, from
// web-features, the W3C's own list of what each browser has had since when.
import { readFileSync } from "node:fs";
import { features } from "web-features";

const PACKAGE = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

// { chrome: "111", edge: "111", firefox: "113", safari: "16.2" }
export const OLDEST = Object.fromEntries(PACKAGE.browserslist.map((line) => line.split(" >= ")));
const PHONES = { chrome_android: "chrome", firefox_android: "firefox", safari_ios: "safari" };
const parts = (version) => version.replace("≤", "").split(".").map(Number);

export function older(version, than) {
  const [[major, minor = 0], [most, last = 0]] = [parts(version), parts(than)];
  return major < most || (major === most && minor <= last);
}
// Whether all of the oldest browsers have what each has had since a version.
export const within = (support, oldest = OLDEST) => Object.entries(oldest).every(([name]) => name in support)
  && Object.entries(support).every(([name, version]) => older(version, oldest[PHONES[name] ?? name]));
export function known(id, oldest = OLDEST) {
  if (!features[id]?.status) throw new Error(`web-features has no ${id}`);
  return within(features[id].status.support, oldest);
}
// The last year until whose end all that had come to every browser is known to the oldest ones.
export function year(oldest = OLDEST) {
  const since = Object.keys(features).filter((id) => features[id].status?.baseline_low_date && !known(id, oldest))
    .map((id) => +features[id].status.baseline_low_date.replace("≤", "").slice(0, 4));
  return Math.min(...since) - 1;
}
