// For every page of the dashboard: the browser's time zone for the server, buttons that copy, and the end of drafts.
// Pages work without it.
"use strict";

(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const cookie = `socialpub_zone=${encodeURIComponent(zone)}`;
  if (zone && !document.cookie.split("; ").includes(cookie)) {
    document.cookie = `${cookie}; path=/; max-age=31536000; samesite=lax`;
  }

  // <button data-copy="id of an element"> copies that element's text, and says so in the button for a moment.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    const text = source.value ?? source.textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without https there is no clipboard: select it, so that the keyboard can copy it.
      const range = document.createRange();
      range.selectNodeContents(source);
      const selection = getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      document.execCommand("copy");
    }
    const said = button.dataset.copied || "Copied";
    const before = button.textContent;
    button.textContent = said;
    setTimeout(() => { button.textContent = before; }, 2000);
  });

  // <form data-once> is sent once, however often its button is pressed meanwhile.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.once === undefined) return;
    if (form.dataset.once === "sent") event.preventDefault();
    form.dataset.once = "sent";
  });
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-once]")) form.dataset.once = "";
  });

  // Drafts of posts (compose_draft.js) end when a page says that the post was accepted, and with the session.
  function endAccepted() {
    const sent = sessionStorage.getItem("socialpub-sent");
    sessionStorage.removeItem("socialpub-sent");
    const accepted = !document.getElementById("compose") && document.querySelector('main > [role="status"]');
    if (sent && accepted) localStorage.removeItem(sent);
  }
  function endAll(event) {
    if (!event.target.action.endsWith("/logout")) return;
    for (const key of Object.keys(localStorage)) if (key.startsWith("socialpub-draft:")) localStorage.removeItem(key);
  }
  // A browser that stores nothing refuses even the question.
  const quietly = (act) => (event) => { try { act(event); } catch { /* then there is no draft */ } };
  quietly(endAccepted)();
  document.addEventListener("submit", quietly(endAll));
})();
