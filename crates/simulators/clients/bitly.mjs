// Reads a simulated Bitly with the npm package `bitly`. The simulator's JSON line is in SIMULATOR.
import assert from "node:assert/strict";
import axios from "axios";
import { BitlyClient } from "bitly";

const simulator = JSON.parse(process.env.SIMULATOR);

// The client knows one host and insists on https.
axios.interceptors.request.use((config) => {
  config.url = config.url.replace("https://api-ssl.bitly.com/v4", simulator.url);
  return config;
});

// It sends the token as it is given, without a scheme.
const client = new BitlyClient(`Bearer ${simulator.token}`);
const get = (path, query = {}) => client.bitlyRequest(path, query, "GET");

const user = await get("user");
assert.equal(user.default_group_guid, simulator.group);
const { groups } = await get("groups");
const group = groups.find((group) => group.guid === simulator.group);
assert.ok(group.is_active);
assert.ok(group.bsds.includes(simulator.domain));

const seen = new Map();
let slugs = 0;
let pages = 0;
for (let cursor = ""; ; ) {
  const page = await get(`groups/${simulator.group}/bitlinks`, {
    size: 100,
    archived: "both",
    search_after: cursor,
  });
  pages += 1;
  assert.equal(typeof page.pagination.next, "string");
  for (const link of page.links) {
    checkLink(link);
    assert.ok(!seen.has(link.id), `${link.id} came twice`);
    seen.set(link.id, link);
    slugs += 1 + (link.custom_bitlinks?.length ?? 0);
  }
  cursor = page.pagination.search_after;
  assert.equal(cursor === "", page.pagination.next === "");
  if (cursor === "") break;
}
assert.equal(seen.size, simulator.links);
assert.equal(slugs, simulator.slugs);

// One link. The client's own getBitlink moves every id of six signs and more to bit.ly, so it is not used.
const [id, link] = [...seen].at(-1);
assert.deepEqual(await get(`bitlinks/${id}`), link);

await refused("NOT_FOUND", () => get(`bitlinks/${simulator.domain}/3nothing`));
await refused("NOT_FOUND", () => get("groups/Bnone000000/bitlinks"));
const stranger = new BitlyClient("Bearer 0000000000000000000000000000000000000000");
await refused("UNAUTHORIZED", () => stranger.bitlyRequest("user", {}, "GET"));

console.log(`bitly (npm): ${seen.size} links, ${slugs} slugs, ${pages} pages agree`);

// The types of the package's BitlyLink; what a real answer may leave out or give as null may be missing here too.
function checkLink(link) {
  const maybe = (value, check) => value === undefined || value === null || check(value);
  const texts = (value) => Array.isArray(value) && value.every((text) => typeof text === "string");
  assert.equal(typeof link.id, "string");
  assert.equal(link.link, `https://${link.id}`);
  assert.equal(typeof link.long_url, "string");
  assert.equal(typeof link.archived, "boolean");
  assert.match(link.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+0000$/);
  assert.ok(maybe(link.title, (title) => typeof title === "string"));
  assert.ok(maybe(link.tags, texts));
  assert.ok(maybe(link.custom_bitlinks, texts));
  assert.ok(maybe(link.deeplinks, Array.isArray));
  assert.equal(typeof link.references.group, "string");
}

// The client throws the error's body.
async function refused(message, ask) {
  const body = await ask().then(
    () => assert.fail(`expected ${message}`),
    (error) => error,
  );
  assert.equal(body.message, message);
  assert.equal(typeof body.description, "string");
  assert.equal(typeof body.resource, "string");
}
