// The form that a bot opened for a person: a view of Block Kit with text inputs.

import { h, icon } from "./dom.js";
import { blocks, plain } from "./blocks.js";

/** modals keeps the page's one form. doing.submit(id, values) resolves to errors by block id, doing.close(id) leaves it. */
export function modals(doing) {
  let open = null; // {id, hash, dialog}

  return {
    /** show makes the page show this view, or none. A view that was changed keeps what was typed. */
    show(view, names) {
      if (!view) {
        open?.dialog.remove();
        open = null;
        return;
      }
      if (open && open.id === view.id && open.hash === view.hash) return;
      const typed = open?.id === view.id ? values(open.dialog) : {};
      open?.dialog.remove();
      open = { id: view.id, hash: view.hash, dialog: build(view, names, typed, doing) };
      document.body.append(open.dialog);
      open.dialog.showModal();
      open.dialog.querySelector("[data-block]")?.focus();
    },
  };
}

function build(view, names, typed, doing) {
  const dialog = h("dialog", { class: "modal", "data-testid": "modal", "aria-label": view.title });
  const submit = h("button", { type: "submit", class: "button primary", "data-testid": "modal-submit" }, view.submit || "Submit");
  const leave = () => doing.close(view.id);
  const form = h("form", { novalidate: true },
    h("header", {}, h("h2", {}, view.title), h("button", { type: "button", class: "icon-button", "aria-label": "Close", onclick: leave }, icon("close"))),
    h("div", { class: "modal-body" }, (view.blocks || []).map((b) => b.type === "input" ? input(b, typed) : blocks([b], names, { file: doing.file }))),
    h("p", { class: "problem", role: "alert", hidden: true }),
    h("footer", {}, h("button", { type: "button", class: "button", "data-testid": "modal-close", onclick: leave }, view.close || "Cancel"),
      view.submit || (view.blocks || []).some((b) => b.type === "input") ? submit : null));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    complain(dialog, incomplete(dialog));
    if (dialog.querySelector(".field-error:not([hidden])")) return;
    submit.disabled = true;
    const errors = await doing.submit(view.id, values(dialog));
    submit.disabled = false;
    complain(dialog, errors);
  });
  dialog.addEventListener("cancel", (event) => { event.preventDefault(); leave(); });
  dialog.append(form);
  return dialog;
}

function input(b, typed) {
  const e = b.element || {};
  if (e.type !== "plain_text_input") return h("p", { class: "unknown" }, `A “${e.type}” input, which this page cannot show`);
  const id = `input-${b.block_id}-${e.action_id}`;
  const field = h(e.multiline ? "textarea" : "input", {
    id, type: e.multiline ? null : "text", rows: e.multiline ? "4" : null, "data-testid": `input-${e.action_id}`,
    "data-block": b.block_id, "data-action": e.action_id, "data-optional": b.optional === true, placeholder: e.placeholder && plain(e.placeholder),
    minlength: e.min_length, maxlength: e.max_length, "aria-describedby": `${id}-error`,
    value: typed[b.block_id]?.[e.action_id] ?? e.initial_value ?? "",
  });
  if (e.multiline) {
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) field.form.requestSubmit();
    });
  }
  return h("div", { class: "input" },
    h("label", { for: id }, plain(b.label), b.optional && h("span", { class: "quiet" }, " (optional)")),
    field,
    b.hint && h("p", { class: "hint" }, plain(b.hint)),
    h("p", { class: "field-error", id: `${id}-error`, role: "alert", "data-testid": "modal-error", "data-for": b.block_id, hidden: true }));
}

const fields = (dialog) => [...dialog.querySelectorAll("[data-block]")];

function values(dialog) {
  const all = {};
  for (const f of fields(dialog)) (all[f.dataset.block] ??= {})[f.dataset.action] = f.value;
  return all;
}

function incomplete(dialog) {
  const errors = {};
  for (const f of fields(dialog)) {
    if (f.value.trim() === "" && !("optional" in f.dataset)) errors[f.dataset.block] = "Please complete this required field.";
  }
  return errors;
}

/** complain shows errors by block id; what belongs to no field goes to the form's own line. */
function complain(dialog, errors) {
  const left = { ...errors };
  for (const line of dialog.querySelectorAll(".field-error")) {
    line.textContent = left[line.dataset.for] || "";
    line.hidden = !line.textContent;
    delete left[line.dataset.for];
  }
  const rest = Object.values(left).join(" ");
  const problem = dialog.querySelector(".problem");
  problem.textContent = rest;
  problem.hidden = !rest;
}
