// A page whose cells are not in the stream reads itself again while it is watched, every `data-live`
// seconds, and soon after a change of the table of the stream that `data-watch` names. It takes over
// what is new in place. Rows that would move wait behind "12 changed, show".

const main = byId("main");
const pauseMs = 1000 * Number(main.dataset.live);
const SOON_MS = 3_000;
let changedSince = false; // the table that is watched changed after the page was read
let readAt = Date.now();
let reading = false;

async function readAgain(force = false) {
  const waitMs = changedSince ? Math.min(SOON_MS, pauseMs) : pauseMs;
  const isDue = pauseMs && Date.now() - readAt >= waitMs * (0.9 + 0.2 * Math.random());
  if (reading || document.hidden || paused || !(isDue || force)) return;
  reading = true;
  changedSince = false;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error" });
    if (answer.ok || answer.status === 404) takeOver(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    // the stream says that the server is away
  } finally {
    reading = false;
    readAt = Date.now();
  }
}

// The first frame of a connection has every table, and is no change.
function noteChange(frame) {
  const isFirst = !lastFrame;
  if (!isFirst && main.dataset.watch && frame.rows?.[main.dataset.watch]) changedSince = true;
}

function takeOver(page) {
  const fresh = page.getElementById("main");
  if (!fresh) return;
  showTimes(page);
  morphChildren(main, fresh);
  const asOf = page.getElementById("as-of");
  if (asOf && byId("as-of")) morphChildren(byId("as-of"), asOf);
  document.dispatchEvent(new CustomEvent("poller:read"));
}

const keyOf = (node) => node.dataset?.key ?? node.id ?? "";
const KEPT = new Set(["open", "hidden", "checked", "value"]);

function morphChildren(old, fresh) {
  if (old.matches("tbody") && rowsMove(old, fresh)) return;
  if (old.matches("svg") || !isSameShape(old, fresh)) {
    if (!old.contains(document.activeElement)) old.replaceChildren(...document.importNode(fresh, true).childNodes);
    return;
  }
  const pairs = [...old.childNodes].map((node, n) => [node, fresh.childNodes[n]]);
  for (const [node, other] of pairs) morph(node, other);
}

function morph(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.matches("[data-keep], input, select, textarea")) return;
  for (const { name } of [...old.attributes]) {
    if (!KEPT.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (!KEPT.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  morphChildren(old, fresh);
}

function isSameShape(old, fresh) {
  if (old.childNodes.length !== fresh.childNodes.length) return false;
  return [...old.childNodes].every((node, n) => {
    const other = fresh.childNodes[n];
    return node.nodeName === other.nodeName && keyOf(node) === keyOf(other);
  });
}

// Whether new rows wait, because somebody is at the table.
function rowsMove(body, fresh) {
  const keys = [...fresh.rows].map(keyOf);
  const shown = [...body.rows].map(keyOf);
  if (String(keys) === String(shown)) return false;
  const table = body.closest("[data-table]");
  const button = table?.querySelector(".changed");
  if (!button || !shown.length || !busy(table)) return false;
  offer(table, Math.max(1, difference(new Set(shown), keys)));
  for (const row of body.rows) {
    const other = [...fresh.rows].find((each) => keyOf(each) === keyOf(row));
    if (other && isSameShape(row, other)) morphChildren(row, other);
  }
  return true;
}

function showChanged(button) {
  const table = button.closest("[data-table]");
  const keys = pendingRows.get(table.dataset.table);
  if (keys) return arrange(table, keys);
  button.hidden = true;
  button.blur();
  table.querySelector("tbody").replaceChildren(); // an empty table takes every row over
  readAgain(true);
}
