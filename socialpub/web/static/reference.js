// Start the viewer of the API reference. This script runs before the viewer's script.
"use strict";

const own = document.currentScript;

// The policy of the page requires a nonce for style elements. The viewer sets it only on its first element.
const createElement = document.createElement;
document.createElement = function (name, options) {
  const element = createElement.call(document, name, options);
  if (element instanceof HTMLStyleElement) element.nonce = own.nonce;
  return element;
};

// The browser may use another address than base_url, for example in a LAN.
const here = new URL(own.dataset.root, location.href).href.replace(/\/$/, "");

// Adjust the document for the viewer.
function arrange(description) {
  const [{ url: baseUrl }] = description.servers;
  description.servers = [{ url: here, description: "This appliance" }];
  description.info.description = description.info.description.replaceAll(baseUrl, here);
  for (const operation of Object.values(description.paths).flatMap(Object.values)) {
    // The viewer writes its own samples. Other samples, such as forms with files, become text.
    const [, ...others] = operation["x-codeSamples"];
    delete operation["x-codeSamples"];
    for (const { label, source } of others) {
      operation.description += `\n\n${label}:\n\n\`\`\`sh\n${source.replaceAll(baseUrl, here)}\n\`\`\``;
    }
    for (const parameter of operation.parameters) {
      // Otherwise the viewer sends a value for each empty filter.
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

// The viewer would show a field for each possible option and no field for a file.
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
    // Disable the online services of the viewer, which the policy also blocks.
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    hideClientButton: true,
    showDeveloperTools: "never",
    documentDownloadType: "none",
    modelsSectionLabel: "Objects",
    // The key is removed when the tab closes.
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
