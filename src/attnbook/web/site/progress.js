// Marks in the table of contents which pages of the chapters have been read to the end, and how many of their questions
// have been answered. The reader's browser stores both, the answers under the quizzes' own names, and nobody else gets
// them.
const READ = "attnbook.read", QUIZ = "attnbook.quiz.";
const PAGES = globalThis.attnbookPages; // page -> quiz -> [number of questions, their hash]
const ROOT = new URL(document.documentElement.dataset.content_root, location.href).href;

const nameOf = (url) => decodeURI(url.split("#")[0].slice(ROOT.length)).replace(/\.html$/, "");
const HERE = nameOf(location.href.split("?")[0]);

function kept(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null; // not written by us, or a browser that stores nothing
  }
}

function pagesRead() {
  const names = kept(READ);
  return Array.isArray(names) ? Object.keys(PAGES).filter((name) => names.includes(name)) : [];
}

// How many of the page's questions are answered. A quiz whose questions have changed counts as unanswered.
function answeredOn(page) {
  let answered = 0, asked = 0;
  for (const [quiz, [count, content]] of Object.entries(PAGES[page])) {
    const memory = kept(QUIZ + quiz), chosen = memory?.content === content ? memory.chosen : [];
    answered += Array.isArray(chosen) ? chosen.filter((n) => n >= 0).length : 0;
    asked += count;
  }
  return { answered, asked };
}

function noteRead() {
  try {
    localStorage.setItem(READ, JSON.stringify([...new Set([...pagesRead(), HERE])]));
  } catch { /* no room, or a browser that keeps nothing */ }
  draw();
}

function forget() {
  if (!confirm("Forget which pages were read and which questions were answered?")) return;
  const ours = (key) => key === READ || key.startsWith(QUIZ);
  for (const key of Object.keys(localStorage).filter(ours)) localStorage.removeItem(key);
  history.replaceState(history.state, "", location.href.split("#")[0]); // the hash may hold answers
  scrollTo({ top: 0, behavior: "instant" });
  location.reload();
}

function element(tag, props, ...children) {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children);
  return node;
}

function markOf(page, read) {
  const { answered, asked } = answeredOn(page);
  if (!read && !answered) return null;
  const said = [read && "read to the end", answered && `${answered} of ${asked} questions answered`].filter(Boolean);
  const seen = element("span", {}, [read && "✓", answered && `${answered}/${asked}`].filter(Boolean).join(" "));
  seen.setAttribute("aria-hidden", "true");
  const heard = element("span", { className: "visually-hidden" }, ` (${said.join(", ")})`);
  return element("span", { className: "read-mark", title: said.join(", ") }, seen, heard);
}

function lineOf(pages) {
  const counts = Object.keys(PAGES).map(answeredOn), sum = (key) => counts.reduce((all, each) => all + each[key], 0);
  if (!pages.length && !sum("answered")) return null;
  return element("p", { className: "read-kept" },
    `${pages.length} of ${counts.length} pages read, ${sum("answered")} of ${sum("asked")} questions answered. `
      + "Only this browser knows. ",
    element("button", { type: "button", className: "read-forget", onclick: forget }, "Forget"));
}

function draw() {
  const pages = pagesRead();
  for (const old of document.querySelectorAll(".read-mark, .read-kept")) old.remove();
  for (const link of document.querySelectorAll(".bd-links a")) {
    const name = nameOf(link.href);
    if (name in PAGES) link.append(...[markOf(name, pages.includes(name))].filter(Boolean));
  }
  document.querySelector(".bd-links")?.after(...[lineOf(pages)].filter(Boolean));
}

// The end of a page counts when the reader has scrolled to it, not when the page opens there.
function watch(end) {
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    seen.disconnect();
    noteRead();
  });
  addEventListener("scroll", () => seen.observe(end), { once: true, passive: true });
}

if (HERE in PAGES) watch(document.querySelector(".colophon"));
for (const when of ["click", "pageshow", "storage"]) addEventListener(when, draw);
draw();
