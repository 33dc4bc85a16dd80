// On a translated page: words that a widget writes while it runs, in the page's language. One observer sees each text
// and each name before it is painted, so no widget knows of languages, and an English page has nothing of this.
// `attnbookWords` holds English texts and theirs; a `{name}` stands for any text, which is looked up in turn,
// a `{n}` of one letter for a number.
(() => {
  const words = new Map(Object.entries(globalThis.attnbookWords));
  const place = /\{(\w+)\}/g, names = ["aria-label", "aria-valuetext", "aria-roledescription", "title", "placeholder"];
  const escape = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const open = [...words.keys()].filter((said) => said.search(place) >= 0).map((said) => {
    const pattern = said.split(place).map((part, n) => (n % 2 ? (part[1] ? "([^]+?)" : "([\\d.,]+)") : escape(part))).join("");
    return [new RegExp(`^${pattern}$`), [...said.matchAll(place)].map(([, name]) => name), words.get(said)];
  });
  const kept = new Map(); // what patterns found, as widgets say the same again and again

  function find(text) {
    if (words.has(text)) return words.get(text);
    if (kept.has(text)) return kept.get(text);
    let found;
    for (const [pattern, parts, said] of open) {
      const values = text.match(pattern)?.slice(1).map(translated);
      if (values) found = said.replace(place, (_, name) => values[parts.indexOf(name)]);
      if (values) break;
    }
    if (kept.size > 1000) kept.clear();
    kept.set(text, found);
    return found;
  }
  function translated(text) {
    const core = text.trim();
    if (!core) return text;
    const sentences = () => core.replace(/\S[^]*?(?:[.?!…](?= )|$)/g, (each) => find(each) ?? each);
    return text.replace(core, () => find(core) ?? sentences());
  }

  const stays = "pre, code, script, style, bdi"; // code stays as it is, and so do tokens
  function lookAt(node) {
    if (node.nodeType === Node.TEXT_NODE) {
      if (!node.parentElement?.closest(".widget-view") || node.parentElement.closest(stays)) return; // prose has its own
      const text = translated(node.data);
      if (text !== node.data) node.data = text;
    } else if (node.nodeType === Node.ELEMENT_NODE && !node.matches(stays)) {
      for (const name of names) lookAtName(node, name);
      for (const child of node.childNodes) lookAt(child);
    }
  }
  function lookAtName(node, name) {
    const text = node.getAttribute(name);
    if (!text) return;
    const found = translated(text);
    if (found !== text) node.setAttribute(name, found);
  }
  new MutationObserver((changes) => {
    for (const { type, target, attributeName, addedNodes } of changes) {
      if (type === "attributes") lookAtName(target, attributeName);
      else if (type === "characterData") lookAt(target);
      else addedNodes.forEach(lookAt);
    }
  }).observe(document, {
    subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: names,
  });
})();
