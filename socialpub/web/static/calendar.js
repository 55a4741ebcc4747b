// Move posts in the calendar by dragging. The script submits the form of "Move" and shows the result.
"use strict";

(() => {
  const calendar = () => document.getElementById("calendar");
  let dragged = null;
  let target = null;

  const aim = (cell) => {
    target?.classList.remove("target");
    target = cell;
    target?.classList.add("target");
  };

  const say = (kind, text) => {
    for (const id of ["moved", "refused"]) document.getElementById(id).textContent = id === kind ? text : "";
  };

  // A day (`2026-11-25`) keeps the time, an hour (`2026-11-25T14:00`) keeps the minutes.
  const newTime = (at, time) => at.includes("T") ? at.slice(0, 14) + time.slice(3) : `${at}T${time}`;

  const move = async (entry, at) => {
    const { token, zone, back, failed } = calendar().dataset;
    const updatedAt = entry.dataset.updated;
    let answer, page;
    try {
      answer = await fetch(entry.dataset.move, {
        method: "POST",
        headers: { "X-Csrf-Token": token, Accept: "text/html" },
        body: new URLSearchParams({ at, zone, back, updatedAt }),
      });
      page = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      return say("refused", failed);
    }
    // After a concurrent change or for a repeated time, the form asks.
    if (answer.status === 409 || page.querySelector('form[action$="/reschedule"] [name="which"]')) {
      location.assign(`${entry.dataset.move}?${new URLSearchParams({ at, back, updatedAt })}`);
      return false;
    }
    const shown = page.getElementById("calendar");
    const reason = page.querySelector("main [role=alert]:not(:empty)");
    const result = page.querySelector("main [role=status]:not(:empty)");
    if (shown) {
      calendar().replaceWith(shown);
      window.htmx?.process(shown);
    }
    if (reason) say("refused", reason.textContent.trim());
    else if (shown && result) say("moved", result.textContent.trim());
    else location.reload();  // signed out meanwhile: leads to the password, and back
    return shown !== null;
  };

  document.addEventListener("dragstart", (event) => {
    const entry = event.target.closest?.("[data-move]");
    if (!entry) return;
    dragged = entry;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", entry.querySelector(".beginning").textContent);
    entry.classList.add("dragged");
    calendar().classList.add("dragging");
  });

  document.addEventListener("dragover", (event) => {
    if (!dragged) return;
    const cell = event.target.closest?.("td[data-at]");
    if (cell !== target) aim(cell ?? null);
    if (!cell) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "move";
  });

  document.addEventListener("dragend", () => {
    dragged?.classList.remove("dragged");
    calendar().classList.remove("dragging");
    dragged = null;
    aim(null);
  });

  document.addEventListener("drop", async (event) => {
    const entry = dragged, cell = event.target.closest?.("td[data-at]");
    if (!entry || !cell) return;
    event.preventDefault();
    if (cell.contains(entry)) return;
    const list = entry.parentNode, next = entry.nextSibling;
    let entries = cell.querySelector(".entries");
    if (!entries) {
      entries = document.createElement("ul");
      entries.className = "entries";
      cell.append(entries);
    }
    entries.append(entry);
    say("", "");
    if (await move(entry, newTime(cell.dataset.at, entry.dataset.time))) return;
    // Refused: return to the former place.
    list.insertBefore(entry, next);
    if (!entries.childElementCount) entries.remove();
  });

  // An empty future hour opens a new post.
  document.addEventListener("click", (event) => {
    const cell = event.target.closest?.("#calendar td.open");
    if (cell && event.target === cell) location.assign(calendar().dataset.compose + cell.dataset.at);
  });

  // No refresh during a drag.
  document.addEventListener("htmx:before:request", (event) => {
    if (dragged) event.preventDefault();
  });
})();
