// Waits until something is true of the page, looking again whenever the page changes. The answer is text.
(probe, css, text, patience) => new Promise((resolve, reject) => {
  const visible = (node) => node.checkVisibility({ visibilityProperty: true }) && node.getClientRects().length > 0;
  const all = () => [...document.querySelectorAll(css)].filter(visible);
  const words = (node) => `${node.innerText} ${node.value ?? ""}`.replace(/\s+/g, " ");
  const shows = (node) => words(node).includes(text.replace(/\s+/g, " "));
  const place = (node) => {
    if (node.disabled) return null;
    node.scrollIntoView({ block: "nearest", behavior: "instant" });
    const box = node.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const hit = document.elementFromPoint(x, y);
    return hit && node.contains(hit) ? `${x} ${y}` : null;
  };
  let before;
  const still = (at) => { // the same place in two frames: nothing scrolls or moves any more
    const rests = at !== undefined && at === before;
    before = at;
    if (at && !rests) requestAnimationFrame(() => requestAnimationFrame(look));
    return rests && at;
  };
  const probes = {
    shows: () => all().some(shows) && "yes",
    lacks: () => !all().some(shows) && "yes",
    counts: () => all().length === Number(text) && "yes",
    clickable: () => still(all().filter(shows).map(place).find(Boolean)),
  };

  let over = false;
  const end = (settle, value) => {
    if (over) return;
    over = true;
    observer.disconnect();
    removeEventListener("transitionend", look, true);
    clearInterval(again);
    clearTimeout(late);
    settle(value);
  };
  const look = () => {
    if (over) return;
    try {
      const found = probes[probe]();
      if (found) end(resolve, found);
    } catch (error) {
      end(reject, error);
    }
  };
  const observer = new MutationObserver(look);
  observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  addEventListener("transitionend", look, true);
  const again = setInterval(look, 200); // what changes without the document changing: layout, values of fields
  const late = setTimeout(() => end(reject, new Error(`not within ${patience} ms; there are ${all().map((node) => words(node).slice(0, 200)).join(" | ") || "none"}`)), patience);
  look();
})
