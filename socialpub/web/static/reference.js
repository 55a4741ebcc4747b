// Starts the viewer of the API's reference. It stands before the viewer's own script.
"use strict";

const own = document.currentScript;

// The page's policy takes only style elements that carry its nonce. The viewer gives it to the first of those that it
// makes and forgets the others.
const createElement = document.createElement;
document.createElement = function (name, options) {
  const element = createElement.call(document, name, options);
  if (element instanceof HTMLStyleElement) element.nonce = own.nonce;
  return element;
};

// A browser that came by another address than base_url (in the LAN, through a tunnel) calls the appliance by that one.
const here = new URL(own.dataset.root, location.href).href.replace(/\/$/, "");

// The document is written for generators and for our own page; this is what the viewer would show worse.
function arrange(description) {
  const [{ url: baseUrl }] = description.servers;
  description.servers = [{ url: here, description: "This appliance" }];
  description.info.description = description.info.description.replaceAll(baseUrl, here);
  for (const operation of Object.values(description.paths).flatMap(Object.values)) {
    // The viewer writes samples of its own, with the reader's key and in three languages. What it cannot know, such as
    // the files of a form, is shown as text.
    const [, ...others] = operation["x-codeSamples"];
    delete operation["x-codeSamples"];
    for (const { label, source } of others) {
      operation.description += `\n\n${label}:\n\n\`\`\`sh\n${source.replaceAll(baseUrl, here)}\n\`\`\``;
    }
    for (const parameter of operation.parameters) {
      // Otherwise it sends the first possible value of every filter that is not filled in, and reports that an empty
      // time is no time, an empty number no number.
      if (parameter.required) continue;
      const { default: usual, format, minimum } = parameter.schema;
      const value = usual ?? minimum ?? (format === "date-time" ? new Date().toISOString() : undefined);
      parameter.examples = { default: { value, "x-disabled": true } };
    }
    const form = operation.requestBody?.content["multipart/form-data"];
    if (form) arrangeForm(form);
  }
  return description;
}

// The viewer would make a field of every option that the payload may have, and none for a file.
function arrangeForm(form) {
  const { payload, ...files } = form.example;
  const text = { type: "string", description: "The post, as JSON" };
  const file = { type: "string", format: "binary", description: "A file. `media[].fileField` contains its name" };
  const names = Object.keys(files);
  form.schema = {
    type: "object",
    required: ["payload"],
    properties: { payload: text, ...Object.fromEntries(names.map((name) => [name, file])) },
  };
  form.example = { payload: JSON.stringify(payload) };
  delete form.encoding;
}

async function start() {
  if (!window.Scalar) return; // the page says where to read on
  const answer = await fetch("?format=json");
  const content = arrange(await answer.json());
  const viewer = document.getElementById("viewer");
  viewer.replaceChildren(); // the viewer would take the content for its own, rendered by a server
  Scalar.createApiReference(viewer, {
    content,
    // Nothing of what its makers offer on servers of theirs; the page's policy would refuse to ask those anyway.
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    hideClientButton: true,
    showDeveloperTools: "never",
    documentDownloadType: "none",
    modelsSectionLabel: "Objects",
    // A key is gone with the tab.
    persistAuth: false,
    defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
    hiddenClients: {
      shell: ["httpie", "wget"],
      js: ["axios", "jquery", "ofetch", "xhr"],
      python: ["aiohttp", "httpx_async", "python3"],
      c: true, clojure: true, csharp: true, dart: true, fsharp: true, go: true, http: true, java: true, julia: true,
      kotlin: true, node: true, objc: true, ocaml: true, php: true, powershell: true, r: true, ruby: true, rust: true,
      swift: true,
    },
  });
}

document.addEventListener("DOMContentLoaded", start);
