// Building and updating elements. Text only ever becomes text nodes, so that nothing anybody wrote is read as markup.

/** h makes an element: h("button", {class: "x", onclick: f}, "text", node, [more], null). */
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) set(node, name, value);
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function set(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else if (name === "value") node.value = value;
  else node.setAttribute(name, value === true ? "" : value);
}

const drawings = {
  hash: "M9 4 7 20M17 4l-2 16M4 9h16M4 15h16",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  close: "M6 6l12 12M18 6 6 18",
  send: "M4 12 20 4l-5 16-4-6zM11 14l4-5",
  clip: "M8 12.5l6-6a3 3 0 0 1 4.2 4.2l-8 8a5 5 0 0 1-7-7l7.5-7.5",
  reply: "M5 6h14v10h-8l-4 4v-4H5z",
  pencil: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
  bin: "M5 7h14M9 7V5h6v2M7 7l1 12h8l1-12M10.5 10.5v5M13.5 10.5v5",
  eye: "M3 12s3.5-6 9-6 9 6 9 6-3.5 6-9 6-9-6-9-6zM12 9.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z",
  file: "M7 4h7l4 4v12H7zM14 4v4h4",
  stop: "M7 7h10v10H7z",
};

/** icon draws one of the line drawings above; it has no accessible name of its own. */
export function icon(name) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", drawings[name]);
  svg.append(path);
  return svg;
}

/**
 * sync makes parent's children show items, in order. An element whose item reads the same is left alone, and so is one
 * that says it is busy (node.busy), for instance because it is being edited. The focus moves to its like.
 */
export function sync(parent, items, keyOf, render) {
  const keys = new Set(items.map(keyOf));
  const old = new Map();
  for (const node of [...parent.children]) {
    if (keys.has(node.key)) old.set(node.key, node);
    else node.remove();
  }
  let next = parent.firstElementChild;
  for (const item of items) {
    const before = old.get(keyOf(item));
    const node = current(before, item, keyOf(item), render);
    if (before && node !== before) {
      if (next === before) next = node;
      refocus(before, node);
    }
    if (node === next) next = next.nextElementSibling;
    else parent.insertBefore(node, next);
  }
}

function current(before, item, key, render) {
  const reads = JSON.stringify(item);
  if (before && (before.busy || before.reads === reads)) return before;
  const node = render(item);
  node.key = key;
  node.reads = reads;
  return node;
}

/** refocus puts node in the place of the one before, and the focus on its like. */
function refocus(before, node) {
  const focused = before.contains(document.activeElement) ? document.activeElement.dataset.testid : undefined;
  before.replaceWith(node);
  if (focused) node.querySelector(`[data-testid="${CSS.escape(focused)}"]`)?.focus();
}

/** toast says something that went wrong, for a while. */
export function toast(text) {
  const node = h("div", { class: "toast", role: "alert", "data-testid": "toast" }, text);
  const close = h("button", { type: "button", class: "icon-button", "aria-label": "Dismiss", onclick: () => node.remove() }, icon("close"));
  node.append(close);
  document.getElementById("toasts").append(node);
  setTimeout(() => node.remove(), 8000);
}

/** ask shows a question and resolves to whether it was agreed to. */
export function ask({ title, body, yes, no, danger }) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "modal small", "data-testid": "confirm", "aria-label": title },
      h("form", { method: "dialog" },
        h("header", {}, h("h2", {}, title)),
        h("div", { class: "modal-body" }, body),
        h("footer", {},
          h("button", { class: "button", value: "no", "data-testid": "confirm-cancel" }, no || "Cancel"),
          h("button", { class: `button ${danger ? "danger" : "primary"}`, value: "yes", "data-testid": "confirm-ok" }, yes || "OK"))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
