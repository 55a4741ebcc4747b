// A caller's program over the generated types: upload a picture, publish it, list the posts. Prints the id of its post.

import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Post = components["schemas"]["Post"];
type PostDraft = components["schemas"]["PostDraft"];

const [url, key, boardId, picture] = process.argv.slice(2) as [string, string, string, string];
const api = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });

/** What was asked for, or the problem as an error. */
function data<T>(answer: { data?: { data: T }; error?: components["schemas"]["Problem"] }): T {
  if (answer.data === undefined) throw new Error(`${answer.error?.code}: ${answer.error?.detail}`);
  return answer.data.data;
}

async function upload(bytes: Buffer): Promise<string> {
  const reservation = data(
    await api.POST("/api/v1/uploads", {
      body: { fileName: "sunset.jpg", mimeType: "image/jpeg", fileSize: bytes.length },
    }),
  );
  const put = await fetch(reservation.uploadUrl, {
    method: "PUT",
    headers: reservation.requiredHeaders,
    body: new Uint8Array(bytes),
  });
  if (!put.ok) throw new Error(`the upload was answered ${put.status}`);
  return data(await api.POST("/api/v1/uploads/complete", { body: { artifactId: reservation.artifactId } })).artifactId;
}

async function settled(id: string): Promise<Post> {
  return data(await api.GET("/api/v1/posts/{postId}", { params: { path: { postId: id }, query: { wait: 60 } } }));
}

const profiles = data(await api.GET("/api/v1/profiles", {}));
const target = profiles.find((profile) => profile.provider === "pinterest");
if (target === undefined) throw new Error("no profile on Pinterest");

const draft: PostDraft = {
  post: { body: "Published by types that nobody wrote" },
  profiles: [target.id],
  media: [{ artifactId: await upload(readFileSync(picture)), alt: "The sun sets behind a lake" }],
  providerOptions: { pinterest: { boardId, title: "Sunset" } },
};
const created = data(await api.POST("/api/v1/posts", { body: draft }));
const post = await settled(created.id);
for (const delivery of post.deliveries) {
  if (delivery.status !== "published") throw new Error(delivery.errorMessage ?? delivery.status);
}
const posts = data(await api.GET("/api/v1/posts", { params: { query: { status: "settled", page: 0 } } }));
if (posts[0]?.id !== post.id) throw new Error("the newest post is another one");
console.log(post.id);

// Each of these must be refused by the types, or tsc fails for a directive that is not needed.
export const misspelt: PostDraft = {
  post: {},
  profiles: [],
  // @ts-expect-error a top-level scheduledAt belongs in post
  scheduledAt: "2036-11-22T08:00:00Z",
};
// @ts-expect-error there is no such privacy level
export const loud: components["schemas"]["TikTokOptions"] = { privacyLevel: "EVERYBODY" };
// @ts-expect-error a post needs its profiles
export const lost: PostDraft = { post: { body: "Where to?" } };
