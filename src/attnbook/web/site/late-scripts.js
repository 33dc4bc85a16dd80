// Scripts that a page requests late, and again if one did not arrive: a request lost on a train is no reason to reload
// the page.
const STATIC = new URL(".", document.currentScript.src);
const arriving = new Map();

// Loads the script at this path below `_static`: requests it once, and again if it did not arrive. That is judged by
// whether `here` finds something of it, since a captive portal may answer with a page of its own.
export function load(path, here) {
  const arrived = (done, failed) => {
    const script = document.createElement("script");
    const lost = () => {
      script.remove();
      arriving.delete(path);
      failed(Object.assign(new Error(`its script, ${path}, did not arrive`), { lost: true }));
    };
    script.src = new URL(path, STATIC);
    script.onload = () => (here() ? done() : lost());
    script.onerror = lost;
    document.head.append(script);
  };
  if (!arriving.has(path)) arriving.set(path, new Promise(arrived));
  return arriving.get(path);
}

// Calls `again` once: when the reader presses the button that is added to the note, comes near it again, or is online
// again. The button goes with the note, so the element around it gets the focus.
export function offer(note, again) {
  const button = document.createElement("button"), around = note.parentNode;
  let away = false;
  const near = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting } of entries) {
        if (isIntersecting && away) once();
        away = !isIntersecting;
      }
    },
    { rootMargin: "400px 0px" },
  );
  function once() {
    near.disconnect();
    removeEventListener("online", once);
    around.tabIndex = -1;
    if (document.activeElement === button) around.focus({ preventScroll: true });
    button.disabled = true;
    again();
  }
  button.type = "button";
  button.textContent = "Try again";
  button.addEventListener("click", once);
  addEventListener("online", once);
  note.append(" ", button);
  near.observe(note);
}
