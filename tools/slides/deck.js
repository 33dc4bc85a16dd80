// Shows the deck: forward goes through the steps of a walk before it leaves its slide, and what a
// slide holds is made as large as the slide allows.
(() => {
  const LEAST = 0.5, MOST = 1.6;
  const isSeen = (node) => node.getClientRects().length && getComputedStyle(node).visibility === "visible";
  const isOff = (node) => node.disabled || node.getAttribute("aria-disabled") === "true";

  // What goes on inside of a slide: a walk's answer that waits, its next step, a folded answer.
  const inside = (slide) => [".attn-here .attn-show", ".attn-next", ".deck-answer:not([open]) > summary"]
    .flatMap((kind) => [...slide.querySelectorAll(kind)])
    .find((node) => isSeen(node) && !isOff(node));
  const forward = () => {
    const button = inside(Reveal.getCurrentSlide());
    if (button) button.click();
    else Reveal.next();
  };

  // Zoom, not a transform: text stays sharp, and pointers meet what they see.
  const fit = (slide, most = MOST) => {
    const body = slide?.querySelector(".deck-body");
    if (!body) return;
    const style = getComputedStyle(slide), zoom = Number(body.style.zoom) || 1;
    const heading = slide.querySelector("h2"), under = parseFloat(getComputedStyle(heading).marginBottom);
    const edges = (one, other) => parseFloat(style[`padding${one}`]) + parseFloat(style[`padding${other}`]);
    const free = slide.clientHeight - edges("Top", "Bottom") - heading.offsetHeight - under;
    const across = slide.clientWidth - edges("Left", "Right");
    const { width, height } = body.getBoundingClientRect();
    const wide = Math.max(width / zoom, body.scrollWidth);
    const best = Math.min(most, (free * zoom) / height, across / wide);
    const wanted = Math.max(LEAST, best);
    if (Math.abs(wanted - zoom) > 0.01) body.style.zoom = wanted;
  };
  const shrink = new ResizeObserver((entries) => {
    for (const { target } of entries) fit(target.closest(".deck"), Number(target.style.zoom) || MOST);
  });

  Reveal.initialize({
    width: "100%", height: "100%", margin: 0, minScale: 1, maxScale: 1, center: false, hash: true,
    slideNumber: "c/t", transition: "none", viewDistance: 1e4, mobileViewDistance: 1e4,
    plugins: [RevealNotes], keyboard: { 32: forward, 34: forward, 39: forward },
  }).then(() => {
    const all = document.querySelectorAll(".deck");
    const every = () => all.forEach((slide) => fit(slide));
    every();
    document.querySelectorAll(".deck-body").forEach((body) => shrink.observe(body));
    addEventListener("resize", every);
    Reveal.on("slidechanged", ({ currentSlide }) => fit(currentSlide));
  });
})();
