// The list of messages: one element for each, with what can be done to it.

import { ask, h, icon, sync } from "./dom.js";
import { emoji } from "./emoji.js";
import { attachments, blocks, chunks, text as textObject } from "./blocks.js";
import { markdown } from "./markdown.js";
import { mrkdwn } from "./mrkdwn.js";

const together = 5 * 60; // seconds within which one person's messages share a head

/**
 * show makes parent show messages. view is what they are seen with: names, users (by id), me, and statuses; doing is what
 * can be done: press, open, edit, remove, stop, dismiss, file. inThread leaves the way into the thread out.
 */
export function show(parent, messages, view, doing, inThread) {
  const rows = rowsOf(messages, view, inThread);
  sync(parent, rows, (row) => row.key, (row) => row.day ? dayLine(row) : message(row, view, doing, inThread));
}

function rowsOf(messages, view, inThread) {
  const rows = [];
  let before = null;
  for (const m of messages) {
    const day = new Date(m.ts * 1000).toDateString();
    if (!before || new Date(before.ts * 1000).toDateString() !== day) {
      if (!inThread) rows.push({ key: `day ${day}`, day: dayName(m.ts) });
      before = null;
    }
    const compact = before !== null && before.user === m.user && !m.ephemeral && !before.ephemeral &&
      !before.replies && m.ts - before.ts < together;
    const status = inThread ? undefined : view.statuses.find((s) => s.thread === m.ts);
    const unread = !inThread && view.unreadThread(m);
    rows.push({ key: `${m.ephemeral ? "e" : "m"} ${m.ts}`, m, compact, status, unread, me: view.me });
    before = m;
  }
  return rows;
}

function dayName(ts) {
  const date = new Date(ts * 1000);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / 86400e3);
  if (days < 2) return days === 0 ? "Today" : "Yesterday";
  return date.toLocaleDateString([], { weekday: "long", day: "numeric", month: "long" });
}

const dayLine = ({ day }) => h("div", { class: "day", role: "separator" }, h("span", {}, day));

export const clock = (ts) => new Date(ts * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

/** avatar draws a person's initials on their colour. */
export function avatar(user, size = "") {
  const initials = user.name.split(/\s+/).map((word) => [...word][0]).join("").slice(0, 2).toUpperCase();
  return h("span", { class: `avatar tone-${user.bot ? "bot" : user.tone ?? 0} ${size}`, "aria-hidden": "true" }, initials);
}

function message({ m, compact, status, unread }, view, doing, inThread) {
  const user = view.users.get(m.user) || { id: m.user, name: m.user };
  const body = h("div", { class: "message-body" });
  const node = h("article", {
    class: ["message", compact && "compact", m.ephemeral && "ephemeral"].filter(Boolean).join(" "),
    "data-testid": m.ephemeral ? "ephemeral" : "message", "data-ts": m.ts, "data-user": m.user,
    "aria-label": `${user.name}, ${clock(m.ts)}`,
  },
  compact ? h("time", { class: "gutter" }, clock(m.ts)) : avatar(user),
  body);
  if (m.ephemeral) body.append(h("p", { class: "only-you" }, icon("eye"), "Only visible to you"));
  if (!compact) body.append(head(user, m));
  body.append(content(m, view, doing));
  if (m.files?.length) body.append(h("div", { class: "files" }, m.files.map((f) => attached(f, doing))));
  if (m.reactions?.length) body.append(h("ul", { class: "reactions" }, m.reactions.map((r) => reaction(r, view))));
  if (m.ephemeral) body.append(h("button", { type: "button", class: "link", onclick: () => doing.dismiss(m) }, "Dismiss message"));
  if (!inThread && m.replies) body.append(replies(m, view, doing, unread));
  if (status) body.append(...statusLine(status, view, doing));
  if (!m.ephemeral && m.subtype !== "tombstone") node.append(tools(node, body, m, doing, inThread));
  return node;
}

function head(user, m) {
  return h("header", { class: "message-head" },
    h("b", {}, user.name),
    user.bot && h("span", { class: "badge" }, "App"),
    user.guest && h("span", { class: "badge guest" }, "Guest"),
    h("time", { datetime: new Date(m.ts * 1000).toISOString(), title: new Date(m.ts * 1000).toLocaleString() }, clock(m.ts)));
}

/** content renders what was said. A message that cannot be rendered must not take the others with it. */
function content(m, view, doing) {
  try {
    return rendered(m, view, doing);
  } catch (error) {
    console.error("a message could not be rendered:", error);
    return h("div", { class: "content" }, h("p", { class: "unknown" }, "This message could not be rendered. Its text:"), h("pre", {}, m.text));
  }
}

function rendered(m, view, doing) {
  const on = { press: (button) => press(button, m, view, doing), file: doing.file };
  const node = h("div", { class: "content", "data-testid": "content" });
  if (m.subtype === "tombstone") node.append(h("p", { class: "gone" }, "This message was deleted."));
  else if ((m.bot || m.ephemeral) && m.blocks?.length) node.append(...blocks(m.blocks, view.names, on));
  else if (m.text) node.append(m.markdown ? h("div", { class: "rich" }, markdown(m.text, view.names)) : mrkdwn(m.text, view.names));
  if (m.attachments?.length) node.append(...attachments(m.attachments, view.names, on));
  if (m.chunks?.length) node.append(...chunks(m.chunks, view.names, on).filter(Boolean));
  if (m.streaming) node.append(h("span", { class: "caret", role: "img", "aria-label": "still writing" }));
  if (m.edited) node.append(h("span", { class: "edited" }, "(edited)"));
  return node;
}

/** press asks once more if the button says so, and then presses it. */
async function press(button, m, view, doing) {
  const c = button.confirm;
  if (c) {
    const agreed = await ask({
      title: c.title?.text || "Are you sure?", body: c.text ? textObject(c.text, view.names) : "",
      yes: c.confirm?.text || "Yes", no: c.deny?.text || "Cancel", danger: c.style === "danger",
    });
    if (!agreed) return;
  }
  await doing.press(m, button.action_id);
}

function attached(f, doing) {
  if (!f.here) return h("span", { class: "file" }, icon("file"), f.name);
  const address = doing.file(f.id);
  if (f.image) {
    return h("a", { class: "shown", href: address, target: "_blank", rel: "noopener" }, h("img", { src: address, alt: f.name, loading: "lazy" }));
  }
  return h("a", { class: "file", href: address, download: f.name }, icon("file"), h("span", {}, f.name), h("small", {}, bytes(f.size)));
}

export function bytes(n) {
  if (n < 1024) return `${n} bytes`;
  return n < 1 << 20 ? `${(n / 1024).toFixed(1)} KB` : `${(n / (1 << 20)).toFixed(1)} MB`;
}

function reaction(r, view) {
  const who = r.Users.map((id) => view.names.user(id)).join(", ");
  return h("li", { class: r.Users.includes(view.me) ? "mine" : null, title: `${who} reacted with :${r.Name}:`, "aria-label": `${r.Name}: ${who}` },
    emoji(r.Name), h("span", {}, String(r.Users.length)));
}

function replies(m, view, doing, unread) {
  const count = `${m.replies} ${m.replies === 1 ? "reply" : "replies"}`;
  const faces = (m.replyUsers || []).slice(0, 4).map((id) => avatar(view.users.get(id) || { id, name: id }, "tiny"));
  return h("button", { type: "button", class: unread ? "replies unread" : "replies", "data-testid": "open-thread", onclick: () => doing.open(m.ts) },
    h("span", { class: "faces" }, faces), h("b", {}, count),
    m.latestReply && h("span", { class: "quiet" }, `Last reply ${clock(m.latestReply)}`));
}

/** statusLine says what the bot is doing, with its stop button while it works. */
export function statusLine(status, view, doing) {
  const said = statusText(status, view.bot.name);
  if (!said) return [];
  const working = status.state === "processing";
  return [h("p", { class: working || status.text ? "status busy" : "status", "data-testid": "status", role: "status" },
    h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i")),
    said,
    working && status.thread && h("button", { type: "button", class: "link stop", "data-testid": "stop", onclick: () => doing.stop(status.thread) }, icon("stop"), "Stop"))];
}

function statusText(status, bot) {
  if (status.text) return `${bot} ${status.text}`;
  if (status.state === "processing") return `${bot} is working…`;
  if (status.state === "suspended") return `${bot} waits for a decision.`;
  return "";
}

function tools(node, body, m, doing, inThread) {
  const tool = (name, label, testid, onclick) =>
    h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, "data-testid": testid, onclick }, icon(name));
  return h("div", { class: "tools", role: "group", "aria-label": "Message actions" },
    !inThread && tool("reply", "Reply in thread", "reply", () => doing.open(m.thread || m.ts)),
    m.mine && tool("pencil", "Edit message", "edit", () => edit(node, body, m, doing)),
    m.mine && tool("bin", "Delete message", "delete", () => remove(m, doing)));
}

async function remove(m, doing) {
  const agreed = await ask({ title: "Delete message", body: "The message will be gone for everybody.", yes: "Delete", danger: true });
  if (agreed) await doing.remove(m);
}

/** edit replaces the message's content by a field until it is saved or left. */
function edit(node, body, m, doing) {
  if (node.busy) return;
  node.busy = true;
  const was = body.querySelector(".content");
  const field = h("textarea", { rows: "2", "aria-label": "Edit message", "data-testid": "edit-text", value: m.source });
  const leave = () => {
    node.busy = false;
    node.reads = ""; // what came meanwhile is shown at the next sync
    form.replaceWith(was);
    node.classList.remove("editing");
  };
  const save = async (event) => {
    event?.preventDefault();
    if (field.value.trim() === "") return;
    if (field.value === m.source || await doing.edit(m, field.value)) {
      leave();
      doing.refresh();
    }
  };
  const form = h("form", { class: "edit", onsubmit: save }, field,
    h("div", { class: "edit-buttons" },
      h("button", { type: "button", class: "button", onclick: () => { leave(); doing.refresh(); } }, "Cancel"),
      h("button", { type: "submit", class: "button primary", "data-testid": "edit-save" }, "Save")));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.stopPropagation(); leave(); doing.refresh(); }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) save(event);
  });
  node.classList.add("editing");
  was.replaceWith(form);
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}
