// TikTok's form: available choices, mutual exclusions and the consent text. The server checks the same rules.
"use strict";

(() => {
  const group = document.getElementById("options-tiktok");
  const privacy = document.getElementById("options-tiktok-privacyLevel");
  if (!group || !privacy) return;
  const form = group.closest("form");
  const byKey = (key) => document.getElementById(`options-tiktok-${key}`);
  const mode = byKey("mode");
  const disclosed = byKey("disclosed");
  const brands = byKey("brands");
  const organic = byKey("brandOrganicToggle");
  const branded = byKey("brandContentToggle");
  const label = byKey("label");
  const consent = document.getElementById("tiktok-consent");
  const creators = [...group.querySelectorAll("[data-profile]")];
  const words = (text) => text.split(" ").filter(Boolean);
  const ONLY_ME = "SELF_ONLY";
  // All levels. The select shows the common levels of the ticked accounts.
  const levels = new Map([...group.querySelectorAll("template option")].map((one) => [one.value, one.textContent]));

  function ticked() {
    const profiles = [...form.querySelectorAll('input[name="profiles"][data-provider="tiktok"]')];
    return profiles.filter((box) => box.checked).map((box) => box.value);
  }

  function concerned(chosen) {
    return creators.filter((one) => chosen.includes(one.dataset.profile) || !chosen.length);
  }

  function showLevels(chosen) {
    const answered = concerned(chosen).map((one) => words(one.dataset.levels)).filter((one) => one.length);
    const common = (answered[0] ?? []).filter((level) => answered.every((one) => one.includes(level)));
    const before = privacy.value;
    const offered = [...privacy.options].map((one) => one.value).filter(Boolean);
    if (common.join() !== offered.join()) {
      // An unavailable level is deselected, and no other level is selected.
      privacy.replaceChildren(privacy.options[0], ...common.map((level) => new Option(levels.get(level) ?? level, level)));
      privacy.value = common.includes(before) ? before : "";
    }
  }

  function showInteractions(chosen) {
    const photosOnly = onlyPhotos();
    const answered = concerned(chosen).filter((one) => one.dataset.levels);
    for (const box of group.querySelectorAll("[data-interaction]")) {
      const around = box.closest("div");
      const hidden = photosOnly && "videosOnly" in around.dataset;
      const locked = answered.length > 0 && answered.every((one) => words(one.dataset.off).includes(box.dataset.interaction));
      around.hidden = hidden;
      around.querySelector('input[type="hidden"]').disabled = hidden;
      box.disabled = hidden || locked;
      if (locked) box.checked = false;
      const reason = around.querySelector("small");
      reason.textContent = locked ? reason.dataset.locked : "";
    }
  }

  function onlyPhotos() {
    const media = [...form.querySelectorAll("#media-list > li[data-kind]")];
    return media.length > 0 && media.every((one) => one.dataset.kind === "image");
  }

  function showBrands() {
    brands.hidden = !disclosed.checked;
    if (!disclosed.checked) {
      organic.checked = branded.checked = false;
    }
    const onlyMe = [...privacy.options].find((one) => one.value === ONLY_ME);
    // The first choice disables the other one.
    branded.disabled = privacy.value === ONLY_ME && !branded.checked;
    if (onlyMe) {
      onlyMe.disabled = branded.checked && privacy.value !== ONLY_ME;
      onlyMe.title = onlyMe.disabled ? privacy.dataset.notPrivate : "";
    }
    branded.closest("label").title = branded.disabled ? privacy.dataset.notPrivate : "";
    if (!disclosed.checked) label.textContent = "";
    else if (branded.checked) label.textContent = label.dataset.paid;
    else label.textContent = organic.checked ? label.dataset.promotional : label.dataset.missing;
  }

  function showConsent(chosen) {
    consent.hidden = chosen.length === 0;
    for (const line of consent.querySelectorAll("[data-branded]")) {
      line.hidden = (line.dataset.branded === "yes") !== branded.checked;
    }
    for (const part of consent.querySelectorAll("[data-unscripted]")) part.hidden = true;
  }

  function show() {
    const chosen = ticked();
    for (const one of creators) one.hidden = chosen.length > 0 && !chosen.includes(one.dataset.profile);
    // TikTok's app asks for these choices of a draft.
    for (const part of group.querySelectorAll("[data-direct]")) part.hidden = mode.value === "draft";
    showLevels(chosen);
    showInteractions(chosen);
    showBrands();
    showConsent(chosen);
  }

  form.addEventListener("change", show);
  const list = document.getElementById("media-list");
  if (list) new MutationObserver(show).observe(list, { childList: true });
  addEventListener("pageshow", show);
  show();
})();
