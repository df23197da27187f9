// The page: it asks for the state of what it shows whenever something changed, and shows it. What is shown (platform, person,
// channel, thread) is in the address, so that a reload, a bookmark and the back button work.

import * as api from "./api.js";
import { h, icon, sync, toast } from "./dom.js";
import { composer, encoded } from "./composer.js";
import { avatar, show, statusLine } from "./messages.js";
import { modals } from "./modal.js";

const at = (id) => document.getElementById(id);

let platforms = [];
let calls = null;
let state = null;
const wanted = { platform: "", as: "", channel: "", thread: "", limit: "" };
const dismissed = new Set();

// ---- what is asked for

function readAddress() {
  const [platform, as, channel, thread] = location.hash.slice(1).split("/").map(decodeURIComponent);
  Object.assign(wanted, { platform: platform || platforms[0].id, as: as || "", channel: channel || "", thread: thread || "", limit: "" });
  if (!platforms.some((p) => p.id === wanted.platform)) wanted.platform = platforms[0].id;
  calls = api.of(wanted.platform);
}

function writeAddress(replace) {
  const parts = [wanted.platform, wanted.as, wanted.channel, wanted.thread];
  while (parts.at(-1) === "") parts.pop();
  const hash = `#${parts.map(encodeURIComponent).join("/")}`;
  if (hash === location.hash) return;
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
}

function go(change) {
  Object.assign(wanted, { limit: "" }, change);
  writeAddress(false);
  return refresh();
}

// ---- getting it: one fetch at a time, and one more if anything happened meanwhile

let fetching = null;
let again = false;

function refresh() {
  again = true;
  fetching ??= fetchAll();
  return fetching;
}

async function fetchAll() {
  while (again) {
    again = false;
    await fetchOnce();
  }
  fetching = null; // in the same step as the last look at again, so that no call falls between
}

async function fetchOnce() {
  const asked = JSON.stringify(wanted);
  try {
    const { as, channel, thread, limit } = wanted;
    const got = await calls.state({ as, channel, thread, limit });
    if (JSON.stringify(wanted) === asked) accept(got);
    else again = true;
  } catch (error) {
    failed(error);
  }
}

/** failed leaves a place that is not there, or not for this person, for their first one. */
function failed(error) {
  if (error.status === 404 && (wanted.channel || wanted.as)) {
    Object.assign(wanted, wanted.channel ? { channel: "", thread: "" } : { as: "" });
    again = true;
  } else if (error.status !== 0) toast(error.message);
}

function accept(got) {
  state = got;
  state.people.forEach((p, i) => { p.tone = i % 6; });
  Object.assign(wanted, { as: state.as, channel: state.channel, thread: state.thread ? wanted.thread : "" });
  writeAddress(true);
  render();
  document.body.inert = false; // there is something to act on
}

// ---- what has been read, per person and place; kept by the browser

const mark = (place) => `parley.read.${state.as}.${place}`;
const readUpTo = (place) => localStorage.getItem(mark(place)) || "";

function markRead(place, ts) {
  if (ts && ts > readUpTo(place)) localStorage.setItem(mark(place), ts);
}

const unread = (channel) => channel.latest > readUpTo(channel.id);

function unreadThread(m) {
  return Boolean(m.latestReply) && m.latestReply > readUpTo(m.ts) && !(state.thread?.ts === m.ts);
}

// ---- doing things

/** attempt does something and then shows what came of it; a failure is said, and false returned. */
async function attempt(what, body) {
  try {
    await calls.act(what, { user: state.as, ...body });
    await refresh();
    return true;
  } catch (error) {
    toast(error.message);
    return false;
  }
}

const doing = {
  press: (m, action) => attempt("click", { channel: state.channel, ts: m.ts, action }),
  open: (ts) => go({ thread: ts }).then(() => threadComposer.focus()),
  edit: (m, text) => attempt("edit", { channel: state.channel, ts: m.ts, text }),
  remove: (m) => attempt("delete", { channel: state.channel, ts: m.ts }),
  stop: (thread) => attempt("stop", { channel: state.channel, thread }),
  dismiss: (m) => { dismissed.add(`${m.user} ${m.ts}`); render(); },
  file: (id) => calls.file(id),
  refresh: () => refresh(),
};

async function send(thread, text, files) {
  if (text.startsWith("/") && files.length === 0) return command(thread, text);
  const { as: user, channel } = state;
  const said = await calls.act("say", { user, channel, thread, text, files: await encoded(files) });
  markRead(channel, said.ts);
  stickToEnd(thread ? "thread-scroll" : "messages-scroll");
  const toBot = !thread && !here().direct && text.toLowerCase().includes(`@${state.bot.name.toLowerCase()}`);
  if (toBot && wide() && wanted.channel === channel) await go({ thread: said.ts });
  else await refresh();
}

async function command(thread, text) {
  const [name] = text.split(/\s/, 1);
  if (!state.commands.some((c) => c.name === name)) {
    throw new Error(`${name} is no command here. Known are ${state.commands.map((c) => c.name).join(", ")}.`);
  }
  if (thread) throw new Error("Slack runs no slash commands in threads. Send it from the channel.");
  await calls.act("command", { user: state.as, channel: state.channel, command: name, text: text.slice(name.length).trim() });
  await refresh();
}

const wide = () => matchMedia("(min-width: 900px)").matches;
const here = () => state.channels.find((c) => c.id === state.channel) || { name: "", members: [] };
const isHere = (user) => here().members === null || here().members.includes(user.id);

// ---- completion

const people = () => [state.bot, ...state.people];

function offers(inThread, before) {
  const slash = /^\/([a-z]*)$/.exec(before);
  if (slash && !inThread) {
    const options = state.commands.filter((c) => c.name.startsWith(before))
      .map((c) => ({ id: c.name, insert: `${c.name} `, label: c.name, about: c.about }));
    return { from: 0, options };
  }
  const typed = /(?:^|[\s(])@([\p{L}\p{N}_]*)$/u.exec(before);
  if (!typed) return null;
  const options = people()
    .filter((u) => isHere(u) && u.name.toLowerCase().startsWith(typed[1].toLowerCase()))
    .map((u) => ({ id: u.id, insert: `@${u.name} `, label: u.name, about: about(u), user: u }));
  return { from: before.length - typed[1].length - 1, options };
}

function about(user) {
  if (user.bot) return "the bot";
  if (user.guest) return "guest";
  if (user.approver) return "may approve";
  return "";
}

// ---- showing it

const ends = new Set(["messages-scroll", "thread-scroll"]); // the lists to be kept at their end
function stickToEnd(id) { ends.add(id); }

for (const id of [...ends]) {
  const list = at(id);
  const settle = () => { if (ends.has(id)) list.scrollTop = list.scrollHeight; };
  list.addEventListener("scroll", () => {
    if (list.scrollHeight - list.scrollTop - list.clientHeight < 60) ends.add(id);
    else ends.delete(id);
  });
  new ResizeObserver(settle).observe(list);
  new ResizeObserver(settle).observe(list.lastElementChild);
}

let shownPlace = "";
let shownThread = "";

function render() {
  const users = new Map(people().map((u) => [u.id, u]));
  const channels = new Map(state.channels.map((c) => [c.id, c]));
  const view = {
    me: state.as, bot: state.bot, users, statuses: state.statuses, unreadThread,
    names: { me: state.as, user: (id) => users.get(id)?.name || id, channel: (id) => channels.get(id)?.name || id },
  };
  const place = `${state.as} ${state.channel}`;
  if (place !== shownPlace) stickToEnd("messages-scroll");
  if (`${place} ${wanted.thread}` !== shownThread) stickToEnd("thread-scroll");
  shownPlace = place;
  shownThread = `${place} ${wanted.thread}`;

  if (document.visibilityState === "visible") {
    markRead(state.channel, here().latest);
    if (state.thread) markRead(state.thread.ts, state.thread.messages.at(-1).ts);
  }
  renderTabs();
  renderSidebar();
  renderChannel(view, place);
  renderThread(view, place);
  modal.show(state.modal, view.names);
  const news = state.channels.some(unread) ? "• " : "";
  document.title = `${news}${here().direct ? state.bot.name : `#${here().name}`} · ${state.platform.workspace}`;
}

function renderTabs() {
  at("platforms").hidden = platforms.length < 2;
  sync(at("platforms"), platforms.map((p) => ({ ...p, open: p.id === wanted.platform })), (p) => p.id, (p) =>
    h("button", { type: "button", "aria-current": p.open ? "page" : null, "data-testid": `platform-${p.id}`,
      onclick: () => { go({ platform: p.id, as: "", channel: "", thread: "" }); } }, p.name));
}

function renderSidebar() {
  at("workspace").textContent = state.platform.workspace;
  const rows = state.channels.map((c) => ({ ...c, open: c.id === state.channel, unread: unread(c), bot: state.bot.name }));
  sync(at("channels"), rows.filter((c) => !c.direct), (c) => c.id, (c) => placeRow(c, icon(c.private ? "lock" : "hash"), c.name));
  sync(at("directs"), rows.filter((c) => c.direct), (c) => c.id, (c) => placeRow(c, avatar(state.bot, "small"), c.bot));
  const list = state.people.map((p) => ({ ...p, open: p.id === state.as }));
  sync(at("people"), list, (p) => p.id, personRow);
}

function placeRow(c, sign, name) {
  return h("li", {}, h("button", {
    type: "button", class: c.unread ? "row unread" : "row", "aria-current": c.open ? "page" : null, "data-testid": `channel-${c.id}`,
    onclick: () => { go({ channel: c.id, thread: "" }).then(() => mainComposer.focus()); },
  }, sign, h("span", { class: "name" }, name), c.unread && h("span", { class: "dot", role: "img", "aria-label": "unread", "data-testid": "unread" })));
}

function personRow(p) {
  return h("li", {}, h("button", {
    type: "button", class: "row person", "aria-pressed": String(p.open), "data-testid": `person-${p.id}`, onclick: () => become(p),
  }, avatar(p, "small"), h("span", { class: "name" }, p.name), about(p) && h("span", { class: "quiet" }, about(p))));
}

/** become goes on as somebody else, in the same place if they are there too. */
function become(p) {
  if (here().direct) return go({ as: p.id, channel: p.direct || "", thread: "" });
  return go({ as: p.id });
}

function renderChannel(view, place) {
  const channel = here();
  at("channel-name").replaceChildren(channel.direct ? avatar(state.bot, "small") : icon(channel.private ? "lock" : "hash"),
    channel.direct ? state.bot.name : channel.name);
  at("channel-about").textContent = channel.direct ? "Direct message: no mention needed" : `Mention @${state.bot.name} to talk to it`;
  const members = people().filter(isHere);
  at("members").replaceChildren(...members.map((u) => avatar(u, "small")), h("span", {}, `${members.length} members`));
  renderIntro(channel);
  const own = (m) => !m.thread && !dismissed.has(`${m.user} ${m.ts}`);
  const list = [...state.messages, ...state.private.filter(own)].sort(byTime);
  show(at("messages"), list, view, doing, false);
  mainComposer.show(place, channel.direct ? `Message ${state.bot.name}` : `Message #${channel.name} as ${view.names.user(state.as)}`);
  mainComposer.status(state.statuses.filter((s) => !s.thread).flatMap((s) => statusLine(s, view, doing)));
}

const byTime = (a, b) => a.ts < b.ts ? -1 : Number(a.ts > b.ts);

function renderIntro(channel) {
  const intro = at("intro");
  const now = JSON.stringify([channel.id, channel.empty, state.as, state.earlier]);
  if (intro.reads === now) return;
  intro.reads = now;
  intro.classList.toggle("alone", channel.empty);
  if (state.earlier > 0) {
    intro.replaceChildren(h("button", { type: "button", class: "button", onclick: () => {
      ends.delete("messages-scroll");
      wanted.limit = String(Math.min(5000, state.messages.length + 200));
      refresh();
    } }, `Show earlier messages (${state.earlier})`));
    return;
  }
  const name = channel.direct ? `your conversation with ${state.bot.name}` : `#${channel.name}`;
  intro.replaceChildren(h("h3", {}, `This is the beginning of ${name}`), ...(channel.empty ? beginning(channel) : []));
}

function beginning(channel) {
  const call = channel.direct ? "" : `@${state.bot.name} `;
  const words = ["hello", "deploy web", "what time is it?"].map((text) => call + text);
  const approver = state.people.find((p) => p.approver);
  return [
    h("p", {}, channel.direct ? `Write to ${state.bot.name}; it answers here.` : `Mention ${state.bot.name} and it answers in a thread.`,
      approver ? ` A deployment has to be approved: ask as one person, then switch to ${approver.name} and decide.` : ""),
    h("div", { class: "starters" }, words.map((text) =>
      h("button", { type: "button", class: "starter", "data-testid": "starter", onclick: () => mainComposer.suggest(text) }, text))),
  ];
}

function renderThread(view, place) {
  const pane = at("thread");
  pane.hidden = !state.thread;
  document.body.classList.toggle("with-thread", Boolean(state.thread));
  if (!state.thread) return;
  const { ts, messages } = state.thread;
  at("thread-about").textContent = here().direct ? state.bot.name : `#${here().name}`;
  const own = state.private.filter((m) => m.thread === ts && !dismissed.has(`${m.user} ${m.ts}`));
  show(at("thread-messages"), [messages[0], ...[...messages.slice(1), ...own].sort(byTime)], view, doing, true);
  threadComposer.show(`${place} ${ts}`, `Reply as ${view.names.user(state.as)}`);
  threadComposer.status(state.statuses.filter((s) => s.thread === ts).flatMap((s) => statusLine(s, view, doing)));
}

// ---- its parts

const mainComposer = composer(at("main-composer"), {
  prefix: "", label: "Message", drop: at("main"), offers: (before) => offers(false, before), send: (text, files) => send("", text, files),
});
const threadComposer = composer(at("thread-composer"), {
  prefix: "thread-", label: "Reply", drop: at("thread"), offers: (before) => offers(true, before),
  send: (text, files) => send(state.thread.ts, text, files),
});
const modal = modals({
  async submit(view, values) {
    try {
      const { errors } = await calls.act("submit", { user: state.as, view, values });
      await refresh();
      return errors;
    } catch (error) {
      return { "": error.message };
    }
  },
  close: (view) => attempt("dismiss", { view }),
  file: (id) => calls.file(id),
});

at("thread-close").append(icon("close"));
at("thread-close").addEventListener("click", () => go({ thread: "" }));
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state?.thread && !document.querySelector("dialog[open]")) go({ thread: "" });
});
addEventListener("popstate", () => { readAddress(); refresh(); });
document.addEventListener("visibilitychange", () => { if (state) render(); });

async function begin() {
  try {
    platforms = await api.platforms();
  } catch {
    at("offline").hidden = false;
    setTimeout(begin, 1000);
    return;
  }
  readAddress();
  await refresh();
  api.listen(() => refresh(), (up) => { at("offline").hidden = up; });
  setInterval(refresh, 30_000); // what ends by time alone, like a status, makes no change
}

begin();
