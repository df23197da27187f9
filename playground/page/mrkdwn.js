// Slack's mrkdwn (docs.slack.dev/messaging/formatting-message-text) to elements. The text is on the wire: &, < and > are
// escaped, <…> is a reference. Nothing is ever parsed as HTML.

import { h } from "./dom.js";
import { emoji } from "./emoji.js";

export const unescape = (text) => text.replace(/&(lt|gt|amp);/g, (_, name) => ({ lt: "<", gt: ">", amp: "&" })[name]);

/** mrkdwn renders a whole text: fences, quotes and lines. */
export function mrkdwn(text, names) {
  const out = document.createDocumentFragment();
  text.split(/```/).forEach((part, i, parts) => {
    const fenced = i % 2 === 1 && i < parts.length - 1;
    if (fenced) out.append(h("pre", {}, unescape(part.replace(/^\n|\n$/g, ""))));
    else out.append(...paragraphs(i % 2 === 1 ? "```" + part : part, names, i > 0, i < parts.length - 1));
  });
  return out;
}

function paragraphs(text, names, afterFence, beforeFence) {
  let trimmed = text;
  if (afterFence) trimmed = trimmed.replace(/^\n/, "");
  if (beforeFence) trimmed = trimmed.replace(/\n$/, "");
  if (trimmed === "") return [];
  const groups = [];
  for (const line of trimmed.split("\n")) {
    const quoted = /^(?:&gt;|>) ?/.exec(line);
    const last = groups.at(-1);
    const content = quoted ? line.slice(quoted[0].length) : line;
    if (last && last.quoted === Boolean(quoted)) last.lines.push(content);
    else groups.push({ quoted: Boolean(quoted), lines: [content] });
  }
  return groups.map(({ quoted, lines }) => h(quoted ? "blockquote" : "p", {}, inline(lines.join("\n"), names)));
}

const tokens = new RegExp([
  String.raw`<(?<ref>[^<>|\n]+)(?:\|(?<label>[^<>\n]*))?>`,
  "`(?<code>[^`\\n]+)`",
  String.raw`(?<![\p{L}\p{N}*])\*(?<bold>\S|\S[^*\n]*?\S)\*(?![\p{L}\p{N}*])`,
  String.raw`(?<![\p{L}\p{N}_])_(?<italic>\S|\S[^_\n]*?\S)_(?![\p{L}\p{N}_])`,
  String.raw`(?<![\p{L}\p{N}~])~(?<strike>\S|\S[^~\n]*?\S)~(?![\p{L}\p{N}~])`,
  String.raw`:(?<emoji>[a-z0-9_+\-]+):`,
].join("|"), "gu");

/** inline renders what may stand within a line; line ends stay. */
export function inline(text, names) {
  const out = document.createDocumentFragment();
  let done = 0;
  for (const match of text.matchAll(tokens)) {
    out.append(unescape(text.slice(done, match.index)), token(match, names));
    done = match.index + match[0].length;
  }
  out.append(unescape(text.slice(done)));
  return out;
}

function token({ 0: whole, groups: g }, names) {
  if (g.ref !== undefined) return reference(g.ref, g.label, names);
  if (g.code !== undefined) return h("code", {}, unescape(g.code));
  if (g.bold !== undefined) return h("strong", {}, inline(g.bold, names));
  if (g.italic !== undefined) return h("em", {}, inline(g.italic, names));
  if (g.strike !== undefined) return h("s", {}, inline(g.strike, names));
  const drawn = emoji(g.emoji);
  return drawn === whole ? whole : h("span", { role: "img", "aria-label": g.emoji, title: whole }, drawn);
}

/** reference renders <…>: a person, a channel, a group, everybody, a date or a link. */
export function reference(ref, label, names) {
  const said = label === undefined ? undefined : unescape(label);
  if (ref.startsWith("@")) return mention(ref.slice(1), names);
  if (ref.startsWith("#")) return h("span", { class: "mention" }, `#${said || names.channel(ref.slice(1))}`);
  if (ref.startsWith("!")) return special(ref.slice(1), said);
  return link(unescape(ref), said);
}

export function mention(user, names) {
  return h("span", { class: names.me === user ? "mention me" : "mention" }, `@${names.user(user)}`);
}

function special(ref, said) {
  if (/^(here|channel|everyone)$/.test(ref)) return h("span", { class: "mention me" }, `@${ref}`);
  return h("span", { class: ref.startsWith("subteam^") ? "mention" : null }, said || ref.split("^")[0]);
}

/** link makes an anchor, of addresses that a browser may follow; of others it is text. */
export function link(url, said) {
  if (!/^(https?:\/\/|mailto:)/i.test(url)) return said || url;
  return h("a", { href: url, target: "_blank", rel: "noopener noreferrer nofollow" }, said || url.replace(/^mailto:/i, ""));
}
