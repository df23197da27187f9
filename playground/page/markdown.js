// Markdown as Slack's markdown blocks and markdown_text have it: the usual part of CommonMark, tables, and Slack's own
// <…> references. Images become links, HTML stays text.

import { h } from "./dom.js";
import { emoji } from "./emoji.js";
import { link, reference, unescape } from "./mrkdwn.js";

/** markdown renders a whole text. */
export function markdown(text, names) {
  const out = document.createDocumentFragment();
  out.append(...blocks(text.split("\n"), names, 0));
  return out;
}

const deepest = 20; // quotes and lists within each other; what is deeper is text

const item = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)(.*)$/;
const rule = /^ {0,3}([-*_])( *\1){2,} *$/;
const fence = /^ {0,3}(`{3,}|~{3,})/;
const heading = /^ {0,3}(#{1,6}) +(.*?)(?: +#+)? *$/;
const delimiter = /^ *\|? *:?-+:? *(\| *:?-+:? *)*\|? *$/;

function blocks(lines, names, depth) {
  const out = [];
  let i = 0;
  while (i < lines.length) {
    const [node, used] = block(lines.slice(i), names, depth);
    if (node) out.push(node);
    i += used;
  }
  return out;
}

/** block reads one block at the beginning of lines: what it is, and how many lines it took. */
function block(lines, names, depth) {
  const line = lines[0];
  if (line.trim() === "") return [null, 1];
  if (fence.test(line)) return fenced(lines);
  const head = heading.exec(line);
  if (head) return [h(`h${Math.min(6, head[1].length + 2)}`, { class: "md-heading" }, spans(head[2], names)), 1];
  if (rule.test(line)) return [h("hr"), 1];
  if (depth < deepest && /^ {0,3}>/.test(line)) return quote(lines, names, depth);
  if (depth < deepest && item.test(line)) return listOf(lines, names, depth);
  if (line.includes("|") && lines.length > 1 && delimiter.test(lines[1])) return table(lines, names);
  return paragraph(lines, names);
}

function fenced(lines) {
  const mark = fence.exec(lines[0])[1];
  const close = lines.findIndex((line, i) => i > 0 && line.trim().startsWith(mark) && line.trim().replaceAll(mark[0], "") === "");
  const end = close < 0 ? lines.length : close;
  return [h("pre", {}, lines.slice(1, end).join("\n")), end + 1];
}

function quote(lines, names, depth) {
  let n = 0;
  while (n < lines.length && /^ {0,3}>/.test(lines[n])) n++;
  const inner = lines.slice(0, n).map((line) => line.replace(/^ {0,3}> ?/, ""));
  return [h("blockquote", {}, blocks(inner, names, depth + 1)), n];
}

function listOf(lines, names, depth) {
  const ordered = /\d/.test(item.exec(lines[0])[2]);
  const items = [];
  let n = 0;
  while (n < lines.length) {
    const start = item.exec(lines[n]);
    if (!start || /\d/.test(start[2]) !== ordered || rule.test(lines[n])) break;
    const indent = start[1].length + start[2].length + Math.max(1, Math.min(4, start[3].length));
    const inner = [start[4]];
    n++;
    while (n < lines.length && belongs(lines, n, indent)) inner.push(lines[n++].replace(new RegExp(`^ {0,${indent}}`), ""));
    items.push(h("li", {}, tight(blocks(inner, names, depth + 1))));
  }
  const first = ordered ? parseInt(item.exec(lines[0])[2], 10) : null;
  return [h(ordered ? "ol" : "ul", { start: first === 1 ? null : first }, items), n];
}

/** belongs tells whether a line goes on with an item: it is indented enough, or blank before one that is. */
function belongs(lines, n, indent) {
  const deep = (line) => line !== undefined && line.trim() !== "" && line.search(/\S/) >= Math.min(indent, 2);
  if (lines[n].trim() === "") return deep(lines[n + 1]);
  return deep(lines[n]) || !starts(lines[n]) && lines[n - 1].trim() !== "";
}

/** tight drops the paragraph of an item that is nothing else. */
function tight(nodes) {
  return nodes.map((node, i) => i === 0 && node.tagName === "P" ? [...node.childNodes] : node);
}

function table(lines, names) {
  let n = 2;
  while (n < lines.length && lines[n].includes("|") && lines[n].trim() !== "") n++;
  const [head, ...body] = [lines[0], ...lines.slice(2, n)].map(cells);
  const row = (tag) => (texts) => h("tr", {}, head.map((_, i) => h(tag, {}, spans(texts[i] || "", names))));
  return [h("div", { class: "table" }, h("table", {}, h("thead", {}, row("th")(head)), h("tbody", {}, body.map(row("td"))))), n];
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));

const starts = (line) => fence.test(line) || heading.test(line) || rule.test(line) || /^ {0,3}>/.test(line) || item.test(line);

function paragraph(lines, names) {
  let n = 1;
  while (n < lines.length && lines[n].trim() !== "" && !starts(lines[n])) n++;
  return [h("p", {}, spans(lines.slice(0, n).map((line) => line.trimStart()).join("\n"), names)), n];
}

const tokens = new RegExp([
  String.raw`\\(?<escaped>[!-\/:-@\[-${"`"}{-~])`,
  "(?<ticks>`+)(?<code>[^`]|[^`][\\s\\S]*?[^`])\\k<ticks>(?!`)",
  String.raw`!?\[(?<label>[^\[\]\n]*)\]\((?<href>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?: "[^"\n]*")?\)`,
  String.raw`<(?<ref>[@#!][^<>|\n]+|(?:https?:\/\/|mailto:)[^<>|\s]+)(?:\|(?<said>[^<>\n]*))?>`,
  String.raw`(?<bare>https?:\/\/[^\s<>"]*[^\s<>".,;:!?)'*_~])`,
  String.raw`\*\*(?<bold>\S|\S[\s\S]*?\S)\*\*(?!\*)`,
  String.raw`(?<![\p{L}\p{N}_])__(?<bold2>\S|\S[\s\S]*?\S)__(?![\p{L}\p{N}_])`,
  String.raw`(?<!\*)\*(?<italic>[^\s*]|[^\s*](?:[^*]|\*\*)*?[^\s*])\*(?!\*)`,
  String.raw`(?<![\p{L}\p{N}_])_(?<italic2>[^\s_]|[^\s_][\s\S]*?[^\s_])_(?![\p{L}\p{N}_])`,
  String.raw`~~(?<strike>\S|\S[\s\S]*?\S)~~`,
  String.raw`:(?<emoji>[a-z0-9_+\-]+):`,
].join("|"), "gu");

/** spans renders what may stand within a paragraph. */
function spans(text, names) {
  const out = document.createDocumentFragment();
  let done = 0;
  for (const match of text.matchAll(tokens)) {
    out.append(unescape(text.slice(done, match.index)), span(match, names));
    done = match.index + match[0].length;
  }
  out.append(unescape(text.slice(done)));
  return out;
}

function span({ 0: whole, groups: g }, names) {
  if (g.escaped !== undefined) return g.escaped;
  if (g.code !== undefined) return h("code", {}, g.code);
  if (g.href !== undefined) return link(unescape(g.href), unescape(g.label));
  if (g.ref !== undefined) return reference(g.ref, g.said, names);
  if (g.bare !== undefined) return link(unescape(g.bare));
  const bold = g.bold ?? g.bold2;
  if (bold !== undefined) return h("strong", {}, spans(bold, names));
  const italic = g.italic ?? g.italic2;
  if (italic !== undefined) return h("em", {}, spans(italic, names));
  if (g.strike !== undefined) return h("s", {}, spans(g.strike, names));
  const drawn = emoji(g.emoji);
  return drawn === whole ? whole : h("span", { role: "img", "aria-label": g.emoji, title: whole }, drawn);
}
