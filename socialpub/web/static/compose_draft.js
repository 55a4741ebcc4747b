// Drafts: this browser stores the form for this installation and page until the post is accepted or the owner signs
// out. A draft never contains the form token.
"use strict";

(() => {
  const shared = window.composeForm;
  if (!shared) return;
  const { form, words, sentence } = shared;
  const PREFIX = "socialpub-draft:";
  const LONGEST = 30 * 24 * 3600 * 1000;
  const query = new URLSearchParams(location.search);
  // A copy of a post has its own draft.
  const origin = ["from", "again"].find((name) => query.has(name));
  const copied = origin ? `?${origin}=${query.get(origin)}` : "";
  const key = `${PREFIX}${words.installation}:${location.pathname}${copied}`;
  const line = document.getElementById("compose-draft");
  const SAVE_AFTER = 300;
  let timer = 0;
  let stopped = false;

  // A draft also contains the form id and the version of the post, so that the server can detect duplicates and
  // concurrent changes.
  const isOfForm = (field) => ["form", "updatedAt"].includes(field.name);
  const isKept = (field) => isOfForm(field) || (
    field.name && !["csrf", "artifact"].includes(field.name) && !field.name.startsWith("alt.")
    && !["hidden", "file", "submit", "button"].includes(field.type) && !field.closest("#media-list"));
  const kept = () => [...form.elements].filter(isKept);
  const isBox = (field) => ["checkbox", "radio"].includes(field.type);

  function isAtFirst(field) {
    if (isOfForm(field)) return true;
    if (isBox(field)) return field.checked === field.defaultChecked;
    if (field.options) {
      const first = [...field.options].findIndex((option) => option.defaultSelected);
      return field.selectedIndex === Math.max(0, first);
    }
    return field.value === field.defaultValue;
  }

  const media = () => [...document.querySelectorAll("#media-list > li[data-artifact]")].map((item) => ({
    id: item.dataset.artifact, alt: item.querySelector('[name^="alt."]').value,
  }));

  const listed = () => JSON.stringify(media());
  const began = listed();
  const isEmpty = () => kept().every(isAtFirst) && listed() === began;

  function written() {
    const fields = kept().filter((field) => !isBox(field) || field.checked).map((field) => [field.name, field.value]);
    const boxes = [...new Set(kept().filter(isBox).map((field) => field.name))];
    return { at: Date.now(), fields, boxes, media: media() };
  }

  function save() {
    clearTimeout(timer);
    if (stopped || isSent()) return;
    try {
      if (isEmpty()) { localStorage.removeItem(key); return; }
      localStorage.setItem(key, JSON.stringify(written()));
    } catch { /* a browser that keeps nothing, or is full */ }
  }

  // The history entry stores the submitted form with its id.
  let sent = form.elements.updatedAt ? null : history.state?.sent ?? null;
  const content = (of) => JSON.stringify([of.fields, of.media]);
  // A submitted form without changes is not a draft.
  const isSent = () => sent !== null && content(sent) === content(written());

  function keepSent() {
    sent = written();
    try { history.replaceState({ ...history.state, sent }, ""); } catch { /* too large to be kept */ }
  }

  function read(from) {
    try {
      return JSON.parse(localStorage.getItem(from));
    } catch {
      return null;
    }
  }

  function forgetOld() {
    try {
      for (const one of Object.keys(localStorage)) {
        if (one.startsWith(PREFIX) && !(read(one)?.at > Date.now() - LONGEST)) localStorage.removeItem(one);
      }
    } catch { /* a browser that keeps nothing */ }
  }

  function fill(draft) {
    // Values from the address override the draft.
    const later = new Set(query.has("at") && draft !== sent ? ["when", "time", "zone"] : []);
    const values = new Map();
    for (const [name, value] of draft.fields) values.set(name, [...(values.get(name) ?? []), value]);
    for (const field of kept()) {
      if (later.has(field.name) || field.disabled) continue;
      if (isBox(field)) {
        if (draft.boxes.includes(field.name)) field.checked = (values.get(field.name) ?? []).includes(field.value);
      } else if (values.has(field.name)) {
        const [value] = values.get(field.name);
        if (!field.options || [...field.options].some((option) => option.value === value)) field.value = value;
      }
    }
  }

  async function restoreList(wanted) {
    const list = document.getElementById("media-list");
    const here = new Map([...list.querySelectorAll("li[data-artifact]")].map((item) => [item.dataset.artifact, item]));
    let lost = 0;
    for (const one of wanted) {
      const item = here.get(one.id);
      here.delete(one.id);
      if (item) {
        item.querySelector('[name^="alt."]').value = one.alt;
        list.append(item);
      } else {
        try {
          await shared.restoreMedia(one);
        } catch {
          lost += 1;
        }
      }
    }
    for (const item of here.values()) item.remove();
    return lost;
  }

  async function restore(draft, message) {
    fill(draft);
    const lost = await restoreList(draft.media);
    const when = new Date(draft.at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
    const text = sentence(message, { when }) + (lost ? ` ${sentence(words.lost, { count: lost })}` : "");
    line.setAttribute("role", "status");
    line.hidden = false;
    line.querySelector("span").textContent = text;
    shared.changed();
  }

  function discard() {
    stopped = true;
    localStorage.removeItem(key);
    history.replaceState({ ...history.state, sent: null }, "");
    location.reload();
  }

  line.querySelector("button").addEventListener("click", discard);
  function markSent() {
    try { sessionStorage.setItem("socialpub-sent", key); } catch { /* a browser that keeps nothing */ }
  }

  const soon = () => { clearTimeout(timer); timer = setTimeout(save, SAVE_AFTER); };
  form.addEventListener("input", soon);
  form.addEventListener("change", soon);
  addEventListener("pagehide", save);
  document.addEventListener("submit", (event) => {
    if (event.target === form && !event.defaultPrevented) {
      save();
      // dashboard.js removes the draft if the next page shows success.
      if (/^(publish|anyway)$/.test(event.submitter?.value)) {
        keepSent();
        markSent();
      }
    } else if (event.target.action?.endsWith?.("/logout")) {
      stopped = true;
    }
  });

  forgetOld();
  // A returned page has the current values.
  const cameBack = document.querySelector("#problems [role]") !== null;
  const draft = cameBack ? null : read(key);
  if (draft) restore(draft, words.restored);
  else if (sent && !cameBack) restore(sent, words.submitted);
})();
