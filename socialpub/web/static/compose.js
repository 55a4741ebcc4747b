// Compose with scripts: options by network, counters, problems, previews, and a form that waits for its uploads.
// Without scripts, the buttons of the page do the same.
"use strict";

window.composeForm = (() => {
  const form = document.getElementById("compose");
  const page = document.getElementById("compose-script");
  if (!form || !page) return null;
  const words = page.dataset;
  const said = document.getElementById("compose-said");

  // Shared with the other scripts of the page, which cannot import each other.
  const shared = {
    form,
    words,
    // Fill the {places} of a text.
    sentence: (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]),
    announce: (text) => { said.textContent = text; },
    changed: () => form.dispatchEvent(new Event("change", { bubbles: true })),
    // Send a request with the token. The end of the session is an error.
    ask: async (address, body, more = {}) => {
      let answer;
      try {
        const headers = { "X-Csrf-Token": form.elements.csrf.value, "HX-Request": "true", ...more.headers };
        answer = await fetch(address, { ...more, method: "POST", headers, body });
      } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Error(words.unreachable);
      }
      if (answer.status === 401) throw new Error(words.signedOut);
      return answer;
    },
    uploads: { running: 0, failed: 0 },
  };
  form.classList.add("with-script");
  // With scripts, a form keeps its id after "Back" (compose_draft.js).
  form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "scripted", value: "yes" }));
  for (const one of form.querySelectorAll(".scripted-only")) one.hidden = false;

  const boxes = () => [...form.querySelectorAll('input[name="profiles"]')];

  function showGroups() {
    const chosen = new Set(boxes().filter((box) => box.checked).map((box) => box.dataset.provider));
    for (const network of new Set(boxes().map((box) => box.dataset.provider))) {
      const group = document.getElementById(`options-${network}`);
      if (group) group.hidden = !chosen.has(network);
    }
  }

  function showWhen() {
    const at = form.elements.when?.value === "at";
    for (const field of form.querySelectorAll('[name="time"], [name="zone"]')) {
      field.closest("div").hidden = !at;
    }
    document.getElementById("which").hidden = !at;
    const button = form.querySelector('button[name="do"][value="publish"][data-at]');
    if (button) button.textContent = at ? button.dataset.at : button.dataset.now;
  }

  // A time that is hidden by "Now" is kept, but not sent.
  form.addEventListener("formdata", ({ formData }) => {
    if (formData.get("when") === "now") for (const name of ["time", "which"]) formData.delete(name);
  });

  function show() {
    showGroups();
    showWhen();
  }

  const QUIET = 400;
  let timer = 0;
  let asking = false;
  let again = false;
  let problems = 0;
  // The result of the last submit stays until a change. New problems appear above the buttons, so that nothing moves
  // while the owner writes.
  let keepsResult = document.querySelector("#problems [role=alert], #problems [role=status]") !== null;

  function fields() {
    const sent = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (typeof value === "string") sent.append(name, value);
    }
    // A form does not send disabled checkboxes.
    for (const box of boxes()) if (box.checked && box.disabled) sent.append("profiles", box.value);
    return sent;
  }

  function put(id, found) {
    const place = document.getElementById(id);
    if (!place || !found || place.innerHTML === found.innerHTML) return;
    // Opened details stay open.
    const open = [...place.querySelectorAll("details")].map((one) => one.open);
    [...found.querySelectorAll("details")].forEach((one, at) => { one.open = open[at] ?? false; });
    place.replaceChildren(...found.childNodes);
  }

  // Keep the choice between the same two times.
  function putWhich(found) {
    if (document.getElementById("which").textContent.trim() !== found.textContent.trim()) put("which", found);
  }

  async function check() {
    // One request at a time, so that responses arrive in order.
    if (asking) { again = true; return; }
    asking = true;
    try {
      const answer = await shared.ask(words.check, fields());
      if (!answer.ok) throw new Error(words.unchecked);
      const found = document.createElement("template");
      found.innerHTML = await answer.text();
      // Addresses are relative to the response, which can be deeper than this page.
      for (const one of found.content.querySelectorAll("[src]")) one.src = new URL(one.getAttribute("src"), answer.url);
      const part = (id) => found.content.getElementById(id);
      put("counters", part("counters"));
      put("preview", part("preview"));
      putWhich(part("which"));
      if (!keepsResult) {
        document.getElementById("problems").replaceChildren();
        put("found", part("found"));
        announceProblems(document.querySelectorAll("#found li.problem").length);
      }
      document.getElementById("compose-unchecked").textContent = "";
    } catch (error) {
      document.getElementById("compose-unchecked").textContent = error.message;
    } finally {
      asking = false;
      if (again) { again = false; soon(); }
    }
  }

  function announceProblems(count) {
    if (count !== problems) {
      shared.announce(count ? shared.sentence(words.problems, { count }) : words.noProblems);
      problems = count;
    }
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(check, QUIET);
  }

  function touched(event) {
    if (event.target.type === "file") return;
    if (event.isTrusted) keepsResult = false;
    show();
    soon();
  }
  form.addEventListener("input", touched);
  form.addEventListener("change", touched);

  const waiting = document.getElementById("compose-waiting");
  let sender = null;

  function wait(event) {
    const { running, failed } = shared.uploads;
    if (!running && !failed) return;
    event.preventDefault();
    sender = running ? event.submitter : null;
    waiting.textContent = shared.sentence(running ? words.waiting : words.failedFirst, { count: running || failed });
    waiting.setAttribute("role", running ? "status" : "alert");
  }
  form.addEventListener("submit", wait);

  form.addEventListener("uploads", () => {
    const { running, failed } = shared.uploads;
    if (!waiting.textContent) return;
    if (running && sender) {
      waiting.textContent = shared.sentence(words.waiting, { count: running });
    } else if (failed) {
      sender = null;
      waiting.textContent = shared.sentence(words.failedFirst, { count: failed });
      waiting.setAttribute("role", "alert");
    } else {
      waiting.textContent = "";
      const button = sender;
      sender = null;
      if (button) form.requestSubmit(button);
    }
  });

  show();
  // After the other scripts have restored the form.
  addEventListener("load", check);
  addEventListener("pageshow", (event) => { if (event.persisted) show(); });
  return shared;
})();
