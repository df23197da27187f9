// The field in which people write: it grows, completes names and commands, takes files, and keeps a draft per place.

import { h, icon, toast } from "./dom.js";
import { avatar, bytes } from "./messages.js";

const maxFiles = 17 << 20; // bytes together, so that they fit the server's limit in base64

/**
 * composer fills place with a composer. prefix is "" or "thread-" and begins its test ids. send(text, files) returns whether
 * it worked; offers(text before the cursor) is what can be completed: {from, options: [{id, insert, label, about, user}]}.
 */
export function composer(place, { prefix, label, send, offers, drop }) {
  const drafts = new Map();
  let key = null;
  let files = [];
  let options = [];
  let from = 0;
  let chosen = 0;
  let sending = false;

  const listId = `${prefix}offers`;
  const field = h("textarea", {
    id: `${prefix}composer-field`, "data-testid": `${prefix}composer`, rows: "1", "aria-label": label, role: "combobox",
    "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": listId,
  });
  const list = h("ul", { class: "offers", id: listId, role: "listbox", "aria-label": "Suggestions", hidden: true });
  const picker = h("input", { type: "file", multiple: true, hidden: true, "data-testid": `${prefix}files`, "aria-label": "Files to attach" });
  const attach = h("button", { type: "button", class: "icon-button", "aria-label": "Attach files", title: "Attach files", "data-testid": `${prefix}attach`, onclick: () => picker.click() }, icon("clip"));
  const button = h("button", { type: "submit", class: "send", "aria-label": "Send", title: "Send", "data-testid": `${prefix}send`, disabled: true }, icon("send"));
  const chips = h("ul", { class: "chips", "aria-label": "Files to send" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const status = h("div", { class: "composer-status" });
  const form = h("form", { class: "composer", onsubmit: submit },
    list, field, chips, h("div", { class: "composer-bar" }, attach, picker,
      h("span", { class: "keys", "aria-hidden": "true" }, h("kbd", {}, "Enter"), " sends, ", h("kbd", {}, "Shift"), "+", h("kbd", {}, "Enter"), " makes a new line"),
      button));
  place.append(status, form, problem);

  field.addEventListener("input", changed);
  field.addEventListener("click", offer);
  field.addEventListener("blur", () => setTimeout(hide, 150));
  field.addEventListener("keydown", onKey);
  field.addEventListener("paste", (event) => {
    if (event.clipboardData?.files.length) { event.preventDefault(); add(event.clipboardData.files); }
  });
  picker.addEventListener("change", () => { add(picker.files); picker.value = ""; });
  drop.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    drop.classList.add("dropping");
  });
  drop.addEventListener("dragleave", (event) => { if (!drop.contains(event.relatedTarget)) drop.classList.remove("dropping"); });
  drop.addEventListener("drop", (event) => {
    drop.classList.remove("dropping");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    add(event.dataTransfer.files);
  });

  async function submit(event) {
    event?.preventDefault();
    if (sending || !ready()) return;
    hide();
    const sent = { place: key, text: field.value, files };
    sending = true;
    complain("");
    fill("", []); // at once, so that the next words can be begun
    const error = await send(sent.text.trim(), sent.files).then(() => "", (e) => e.message);
    sending = false;
    if (error) giveBack(sent, error);
    changed();
  }

  /** giveBack puts what was not sent before what was begun meanwhile, where it was written. */
  function giveBack(sent, error) {
    const join = (text, more) => ({ text: [sent.text, text].filter(Boolean).join("\n"), files: [...sent.files, ...more] });
    if (key !== sent.place) {
      const draft = drafts.get(sent.place) || { text: "", files: [] };
      drafts.set(sent.place, join(draft.text, draft.files));
      toast(error);
      return;
    }
    const all = join(field.value, files);
    fill(all.text, all.files);
    complain(error);
  }

  const ready = () => field.value.trim() !== "" || files.length > 0;

  function changed() {
    button.disabled = sending || !ready();
    form.setAttribute("aria-busy", String(sending));
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight, 220)}px`;
    if (document.activeElement === field) offer();
  }

  function complain(text) {
    problem.textContent = text;
    problem.hidden = !text;
  }

  function add(picked) {
    const all = [...files, ...picked];
    if (all.reduce((sum, f) => sum + f.size, 0) > maxFiles) complain(`Files may have ${bytes(maxFiles)} together.`);
    else { files = all; complain(""); }
    showChips();
    field.focus();
  }

  function showChips() {
    chips.replaceChildren(...files.map((f) => h("li", {}, icon("file"), h("span", {}, f.name), h("small", {}, bytes(f.size)),
      h("button", { type: "button", class: "icon-button", "aria-label": `Remove ${f.name}`, onclick: () => { files = files.filter((o) => o !== f); showChips(); } }, icon("close")))));
    changed();
  }

  function fill(text, withFiles) {
    field.value = text;
    files = withFiles;
    showChips();
  }

  function offer() {
    const found = field.selectionStart === field.selectionEnd ? offers(field.value.slice(0, field.selectionStart)) : null;
    options = found?.options || [];
    from = found?.from || 0;
    chosen = 0;
    showOffers();
  }

  function showOffers() {
    list.hidden = options.length === 0;
    field.setAttribute("aria-expanded", String(options.length > 0));
    list.replaceChildren(...options.map((o, i) => h("li", {
      role: "option", id: `${listId}-${i}`, "aria-selected": String(i === chosen), "data-testid": `offer-${o.id}`,
      onmousedown: (event) => { event.preventDefault(); take(i); },
    }, o.user ? avatar(o.user, "small") : h("span", { class: "slash" }, "/"), h("b", {}, o.label), h("span", { class: "quiet" }, o.about))));
    if (options.length) field.setAttribute("aria-activedescendant", `${listId}-${chosen}`);
    else field.removeAttribute("aria-activedescendant");
  }

  function hide() { options = []; showOffers(); }

  function take(i) {
    const at = field.selectionStart;
    field.setRangeText(options[i].insert, from, at, "end");
    field.focus();
    changed();
    hide();
  }

  function onKey(event) {
    if (event.isComposing) return;
    if (options.length && offerKey(event.key)) { event.preventDefault(); event.stopPropagation(); return; }
    if (event.key === "Enter" && !event.shiftKey) submit(event);
  }

  function offerKey(name) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[name];
    if (step) {
      chosen = (chosen + step + options.length) % options.length;
      showOffers();
    } else if (name === "Enter" || name === "Tab") take(chosen);
    else if (name === "Escape") hide();
    else return false;
    return true;
  }

  return {
    /** show moves to another place; what was begun here is kept. */
    show(place, placeholder) {
      field.placeholder = placeholder;
      if (place === key) return;
      if (key !== null) drafts.set(key, { text: field.value, files });
      key = place;
      const draft = drafts.get(place) || { text: "", files: [] };
      fill(draft.text, draft.files);
      complain("");
      hide();
    },
    suggest(text) { fill(text, files); field.focus(); field.setSelectionRange(text.length, text.length); hide(); },
    status(nodes) { status.replaceChildren(...nodes); },
    focus() { field.focus(); },
  };
}

/** encoded reads files for the say request. */
export function encoded(files) {
  return Promise.all(files.map((f) => new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ name: f.name, mediaType: f.type, content: reader.result.slice(reader.result.indexOf(",") + 1) });
    reader.onerror = () => reject(new Error(`${f.name} could not be read.`));
    reader.readAsDataURL(f);
  })));
}
