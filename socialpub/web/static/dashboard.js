// On each page: send the time zone to the server, copy buttons, and remove drafts.
"use strict";

(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const cookie = `socialpub_zone=${encodeURIComponent(zone)}`;
  if (zone && !document.cookie.split("; ").includes(cookie)) {
    document.cookie = `${cookie}; path=/; max-age=31536000; samesite=lax`;
  }

  // <button data-copy="id"> copies the text of that element.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    const text = source.value ?? source.textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without https, there is no clipboard API, so select and copy the text.
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

  // <form data-once> is submitted only once.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.once === undefined) return;
    if (form.dataset.once === "sent") event.preventDefault();
    form.dataset.once = "sent";
  });
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-once]")) form.dataset.once = "";
  });

  // Remove drafts (compose_draft.js) after a post is accepted and after sign-out.
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
  // Storage can be blocked.
  const quietly = (act) => (event) => { try { act(event); } catch { /* then there is no draft */ } };
  quietly(endAccepted)();
  document.addEventListener("submit", quietly(endAll));
})();
