// Media of Compose: files are chosen, dropped, pasted or taken with the camera, and uploaded at once.
"use strict";

(() => {
  const shared = window.composeForm;
  const list = document.getElementById("media-list");
  const input = document.getElementById("field-media");
  if (!shared || !list || !input) return;
  const { form, words, sentence, announce, ask } = shared;
  const AT_ONCE = 2;
  const most = Number(words.most);
  const wrong = document.getElementById("media-wrong");
  const queue = [];
  let sending = 0;

  const clone = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);
  const nameOf = (item) => item.dataset.file || item.querySelector(".file")?.textContent.split(", ")[0] || "";
  const sizeOf = (bytes) => bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

  // A browser that cannot show the file, such as a HEIC, shows `instead`.
  function thumbnail(kind, address, instead) {
    const shown = document.createElement(kind === "video" ? "video" : "img");
    if (kind === "video") {
      Object.assign(shown, { muted: true, preload: "metadata", playsInline: true });
    } else {
      shown.alt = "";
    }
    shown.src = address;
    shown.addEventListener("error", () => { if (instead) shown.src = instead; else shown.remove(); }, { once: true });
    return shown;
  }

  function mediaItem(artifact, address, alt = "") {
    const item = clone("media-item");
    const id = artifact.artifactId;
    item.id = `media-${id}`;
    Object.assign(item.dataset, { artifact: id, kind: artifact.kind, file: artifact.fileName });
    if (artifact.durationSeconds) item.dataset.seconds = artifact.durationSeconds;
    item.querySelector('[name="artifact"]').value = id;
    item.querySelector(".file").textContent = `${artifact.fileName}, ${sizeOf(artifact.sizeBytes)}`;
    const note = item.querySelector(".note");
    Object.assign(note, { textContent: artifact.note ?? "", hidden: !artifact.note });
    item.querySelector(".thumbnail").replaceChildren(
      thumbnail(artifact.kind, address, artifact.kind === "image" && new URL(artifact.thumbnailUrl, artifact.from).href),
    );
    const field = item.querySelector('[name^="alt."]');
    Object.assign(field, { name: `alt.${id}`, id: `alt-${id}`, value: alt });
    item.querySelector("label").htmlFor = field.id;
    for (const button of item.querySelectorAll('button[name="move"], button[name="remove"]')) {
      button.value = button.name === "move" ? `${id}:${button.value.split(":")[1]}` : id;
      button.setAttribute("aria-label", `${button.textContent} ${artifact.fileName}`);
    }
    return prepared(item);
  }

  // Only the image can be dragged, so that text in the fields can be selected.
  function prepared(item) {
    const handle = item.querySelector(".thumbnail");
    handle.draggable = true;
    handle.title = words.drag;
    for (const shown of handle.children) shown.draggable = false;
    return item;
  }

  function settle() {
    const items = [...list.children];
    items.forEach((item, at) => {
      const [up, down] = item.querySelectorAll('button[name="move"]');
      if (up) up.disabled = at === 0;
      if (down) down.disabled = at === items.length - 1;
    });
    const uploads = [...list.querySelectorAll(".upload")];
    shared.uploads.failed = uploads.filter((item) => item.classList.contains("failed")).length;
    shared.uploads.running = uploads.length - shared.uploads.failed;
    form.dispatchEvent(new Event("uploads"));
  }

  function move(item, before) {
    if (item !== before) list.insertBefore(item, before);
    settle();
  }

  function sayPlace(item) {
    const at = [...list.children].indexOf(item) + 1;
    announce(sentence(words.moved, { name: nameOf(item), at, count: list.children.length }));
    shared.changed();
  }

  function remove(item) {
    const name = nameOf(item);
    const next = item.nextElementSibling ?? item.previousElementSibling;
    const shown = item.querySelector(".thumbnail > *");
    if (shown?.src?.startsWith("blob:")) URL.revokeObjectURL(shown.src);
    item.remove();
    settle();
    (next?.querySelector('button[name="remove"]') ?? next?.querySelector("button:not([hidden])") ?? input).focus();
    announce(sentence(words.removed, { name }));
    shared.changed();
  }

  list.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    const item = button?.closest("li");
    if (!item || !["move", "remove"].includes(button.name)) return;
    event.preventDefault();
    if (button.name === "remove") { remove(item); return; }
    const up = button.value.endsWith(":up");
    const other = up ? item.previousElementSibling : item.nextElementSibling?.nextElementSibling ?? null;
    move(item, other);
    // Moving an element removes the focus, so restore the focus.
    (button.disabled ? item.querySelector('button[name="move"]:not(:disabled)') : button)?.focus();
    sayPlace(item);
  });

  let dragged = null;
  let home = null;

  list.addEventListener("dragstart", (event) => {
    dragged = event.target.closest?.(".thumbnail")?.closest("li");
    if (!dragged) return;
    home = dragged.nextElementSibling;
    dragged.classList.add("dragged");
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", nameOf(dragged));
    event.dataTransfer.setDragImage(dragged, 10, 10);
  });
  list.addEventListener("dragover", (event) => {
    const over = event.target.closest("li");
    if (!dragged) return;
    event.preventDefault();
    if (!over || over === dragged) return;
    const box = over.getBoundingClientRect();
    const after = event.clientY > box.top + box.height / 2;
    const before = after ? over.nextElementSibling : over;
    if (before !== dragged && before !== dragged.nextElementSibling) move(dragged, before);
  });
  list.addEventListener("drop", (event) => {
    if (!dragged) return;
    event.preventDefault();
    home = dragged.nextElementSibling;
    sayPlace(dragged);
  });
  list.addEventListener("dragend", () => {
    if (!dragged) return;
    // Dropped elsewhere: return to the former place.
    if (home !== dragged.nextElementSibling) move(dragged, home);
    dragged.classList.remove("dragged");
    dragged = null;
  });

  async function askJson(address, body, signal) {
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    const answer = await ask(address, JSON.stringify(body), { headers, signal });
    const content = await answer.json().catch(() => null);
    if (!answer.ok || !content) throw new Error(content?.detail ?? words.unreachable);
    return { ...content.data, from: answer.url };
  }

  function put(address, headers, upload) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      upload.stop.signal.addEventListener("abort", () => request.abort());
      request.open("PUT", address);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.addEventListener("progress", (event) => {
        if (event.lengthComputable) progress(upload, event.loaded / event.total);
      });
      request.addEventListener("load", () => {
        if (request.status < 300) { resolve(); return; }
        let detail = null;
        try { detail = JSON.parse(request.responseText).detail; } catch { /* a proxy's page */ }
        reject(new Error(detail ?? words.interrupted));
      });
      request.addEventListener("error", () => reject(new Error(words.interrupted)));
      request.addEventListener("abort", () => reject(new DOMException("", "AbortError")));
      request.send(upload.file);
    });
  }

  function progress({ item }, part) {
    item.querySelector("progress").value = Math.round(part * 100);
    item.querySelector(".part").textContent = part < 1 ? `${Math.round(part * 100)} %` : words.examining;
  }

  async function send(upload) {
    const { file, item, stop } = upload;
    const { signal } = stop;
    const fileName = file.name.slice(-255) || "picture";
    const reservation = await askJson(words.reserve, {
      fileName, fileSize: file.size,
    }, signal);
    await put(new URL(reservation.uploadUrl, reservation.from), reservation.requiredHeaders, upload);
    progress(upload, 1);
    const artifact = await askJson(words.complete, { artifactId: reservation.artifactId }, signal);
    const held = item.contains(document.activeElement);
    const done = mediaItem(artifact, upload.address);
    item.replaceWith(done);
    if (held) done.querySelector('[name^="alt."]').focus();
    announce(sentence(words.uploaded, { name: file.name }));
    settle();
    shared.changed();
  }

  function fail(upload, reason) {
    const { item } = upload;
    item.classList.add("failed");
    item.querySelector(".wrong").textContent = reason;
    show(item, { retry: true, remove: true, abort: false, progress: false });
    settle();
    announce(sentence(words.notUploaded, { name: upload.file.name, reason }));
  }

  function show(item, { progress, ...buttons }) {
    item.querySelector("label").hidden = !progress;
    for (const [name, shown] of Object.entries(buttons)) item.querySelector(`[data-do="${name}"]`).hidden = !shown;
  }

  async function next() {
    if (sending >= AT_ONCE || !queue.length) return;
    const upload = queue.shift();
    sending += 1;
    try {
      await send(upload);
    } catch (error) {
      if (error.name !== "AbortError") fail(upload, error.message);
    } finally {
      sending -= 1;
      next();
    }
  }

  function begin(upload) {
    upload.stop = new AbortController();
    upload.item.classList.remove("failed");
    upload.item.querySelector(".wrong").textContent = "";
    show(upload.item, { retry: false, remove: false, abort: true, progress: true });
    progress(upload, 0);
    queue.push(upload);
    settle();
    next();
  }

  function add(files) {
    for (const file of files) {
      if (list.children.length >= most) { wrong.textContent = words.tooMany; return; }
      const item = clone("upload-item");
      const upload = { file, item, address: URL.createObjectURL(file) };
      item.dataset.file = file.name;
      for (const place of item.querySelectorAll(".name")) place.textContent = file.name;
      item.querySelector(".file").textContent = `${file.name}, ${sizeOf(file.size)}`;
      if (file.type.startsWith("image/") || file.type.startsWith("video/")) {
        item.querySelector(".thumbnail").append(thumbnail(file.type.split("/")[0], upload.address));
      }
      item.addEventListener("click", (event) => {
        const does = event.target.closest("[data-do]")?.dataset.do;
        if (does === "retry") begin(upload);
        if (does === "abort" || does === "remove") {
          upload.stop.abort();
          const at = queue.indexOf(upload);
          if (at >= 0) queue.splice(at, 1);
          remove(item);
        }
      });
      list.append(item);
      begin(upload);
    }
  }

  function take(files) {
    wrong.textContent = "";
    add(files);
  }

  function choose(event) {
    take([...event.target.files]);
    // The files are uploaded, so the form does not send them.
    event.target.value = "";
  }
  input.addEventListener("change", choose);
  const camera = clone("camera");
  camera.querySelector("input").addEventListener("change", choose);
  input.after(camera);

  const brings = (event) => !dragged && event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!brings(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    if (!brings(event)) return;
    event.preventDefault();
    take([...event.dataTransfer.files]);
  });
  addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    const brought = event.clipboardData?.types ?? [];
    // Copied text can include an image of the text.
    const isText = brought.includes("text/plain") && (brought.includes("text/html") || brought.includes("text/rtf"));
    if (!files.length || isText) return;
    event.preventDefault();
    take(files);
  });

  addEventListener("beforeunload", (event) => {
    if (shared.uploads.running) event.preventDefault();
  });

  for (const item of list.children) prepared(item);
  settle();

  // Restore an uploaded file of a draft, if the file still exists.
  shared.restoreMedia = async ({ id, alt }) => {
    const artifact = await askJson(words.complete, { artifactId: id });
    list.append(mediaItem(artifact, new URL(artifact.thumbnailUrl, artifact.from).href, alt));
    settle();
  };
})();
