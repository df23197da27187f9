// Block Kit (docs.slack.dev/reference/block-kit/blocks) to elements. What is not known here is named, never left out.

import { h } from "./dom.js";
import { emoji } from "./emoji.js";
import { markdown } from "./markdown.js";
import { inline, link, mention, mrkdwn } from "./mrkdwn.js";

/**
 * blocks renders a list of blocks. on.press(button) is called for a pressed button and returns a promise; without it
 * buttons cannot be pressed here. on.file(id) is the address of a file.
 */
export function blocks(list, names, on) {
  return list.map((block) => {
    const render = renderers[block.type];
    return render ? render(block, names, on) : unknown(`“${block.type}” block`);
  });
}

const unknown = (what) => h("p", { class: "unknown" }, `A ${what}, which this page cannot show`);

const renderers = {
  header: (b) => h("h3", { class: "block-header" }, plain(b.text)),
  divider: () => h("hr"),
  section: (b, names, on) => h("div", { class: "block-section" },
    h("div", { class: "block-section-text" },
      b.text && text(b.text, names),
      b.fields?.length && h("div", { class: "fields" }, b.fields.map((field) => h("div", { class: "field" }, text(field, names))))),
    b.accessory && element(b.accessory, names, on)),
  context: (b, names, on) => h("div", { class: "block-context" }, (b.elements || []).map((e) =>
    e.type === "image" ? h("span", {}, e.alt_text) : h("span", {}, text(e, names, on)))),
  actions: (b, names, on) => h("div", { class: "block-actions" }, (b.elements || []).map((e) => element(e, names, on))),
  markdown: (b, names) => h("div", { class: "rich" }, markdown(b.text || "", names)),
  rich_text: (b, names) => h("div", { class: "rich" }, (b.elements || []).map((e) => rich(e, names))),
  image: (b, _, on) => picture(b, on),
  table: (b, names) => table(b, names),
};

/** text renders a text object. */
export function text(object, names) {
  if (object.type === "plain_text") return plain(object);
  return mrkdwn(object.text || "", names);
}

export function plain(object) {
  const said = object?.text || "";
  return object?.emoji === false ? said : said.replace(/:([a-z0-9_+-]+):/g, (_, name) => emoji(name));
}

function element(e, names, on) {
  if (e.type === "button") return e.url ? linkButton(e) : button(e, on);
  if (e.type === "image") return h("span", { class: "unknown" }, e.alt_text);
  return unknown(`“${e.type}” element`);
}

const look = (e) => e.style === "primary" || e.style === "danger" ? `button ${e.style}` : "button";

function linkButton(e) {
  const anchor = link(e.url, plain(e.text));
  if (anchor.nodeType) anchor.className = look(e);
  return anchor;
}

function button(e, on) {
  const node = h("button", {
    type: "button", class: look(e), "data-testid": `button-${e.action_id}`, "aria-label": e.accessibility_label, disabled: !on.press,
  }, plain(e.text));
  node.addEventListener("click", async () => {
    if (node.getAttribute("aria-busy")) return;
    node.setAttribute("aria-busy", "true");
    try {
      await on.press(e);
    } finally {
      node.removeAttribute("aria-busy");
    }
  });
  return node;
}

function picture(b, on) {
  const title = b.title ? plain(b.title) : "";
  if (b.slack_file?.id) return h("img", { class: "picture", src: on.file(b.slack_file.id), alt: b.alt_text || title });
  return h("p", {}, "Image: ", link(b.image_url || "", b.alt_text || title || b.image_url));
}

function table(b, names) {
  const cell = (c) => c.type === "rich_text" ? (c.elements || []).map((e) => rich(e, names)) : String(c.text ?? "");
  const row = (cells, i) => h("tr", {}, cells.map((c) => h(i === 0 ? "th" : "td", {}, cell(c))));
  return h("div", { class: "table" }, h("table", {}, h("tbody", {}, (b.rows || []).map(row))));
}

function rich(e, names) {
  const inner = (e.elements || []);
  if (e.type === "rich_text_section") return h("p", {}, inner.map((i) => piece(i, names)));
  if (e.type === "rich_text_preformatted") return h("pre", {}, inner.map((i) => piece(i, names)));
  if (e.type === "rich_text_quote") return h("blockquote", {}, inner.map((i) => piece(i, names)));
  if (e.type === "rich_text_list") {
    const items = inner.map((i) => h("li", {}, (i.elements || []).map((p) => piece(p, names))));
    const node = h(e.style === "ordered" ? "ol" : "ul", { start: e.offset ? e.offset + 1 : null }, items);
    node.style.marginInlineStart = `${(e.indent || 0) * 1.5}em`;
    return node;
  }
  return unknown(`“${e.type}” element`);
}

function piece(p, names) {
  switch (p.type) {
    case "text": return styled(p.text, p.style);
    case "link": return styled(link(p.url, p.text), p.style);
    case "user": return mention(p.user_id, names);
    case "channel": return h("span", { class: "mention" }, `#${names.channel(p.channel_id)}`);
    case "broadcast": return h("span", { class: "mention me" }, `@${p.range}`);
    case "emoji": return emoji(p.name);
    case "usergroup": return h("span", { class: "mention" }, `@${p.usergroup_id}`);
    case "date": return p.fallback || "";
    default: return p.text || unknown(`“${p.type}” element`);
  }
}

function styled(content, style = {}) {
  let node = content;
  for (const [name, tag] of [["code", "code"], ["strike", "s"], ["italic", "em"], ["bold", "strong"]]) {
    if (style[name]) node = h(tag, {}, node);
  }
  return node;
}

/** attachments renders the older way of adding to a message. */
export function attachments(list, names, on) {
  return list.map((a) => h("div", { class: "attachment" },
    a.pretext && mrkdwn(a.pretext, names),
    a.title && h("strong", {}, a.title_link ? link(a.title_link, a.title) : a.title),
    a.blocks ? blocks(a.blocks, names, on) : a.text ? mrkdwn(a.text, names) : inline(a.fallback || "", names)));
}

/** chunks renders what a stream carries beside its text: the last word on each task, the plan's title, blocks. */
export function chunks(list, names, on) {
  const tasks = new Map();
  let title = null;
  const rest = [];
  for (const c of list) {
    if (c.type === "task_update") tasks.set(c.id, { ...tasks.get(c.id), ...c });
    else if (c.type === "plan_update") title = c.title;
    else if (c.type === "blocks") rest.push(...blocks(c.blocks || [], names, on));
    else rest.push(unknown(`“${c.type}” chunk`));
  }
  const steps = [...tasks.values()].map((t) => h("li", { class: `task ${t.status || ""}` }, t.title, " ", h("small", {}, (t.status || "").replace("_", " "))));
  return [title && h("strong", {}, title), steps.length > 0 && h("ul", { class: "tasks" }, steps), ...rest];
}
