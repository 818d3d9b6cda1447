// Patches the page's cells from the stream, in place. The page is whole without this file.

const HIDDEN_LIMIT_MS = 60_000; // a tab nobody looks at gives its connection back
const SILENCE_MS = 5_000; // longer without a frame is worth saying
const STATUS_MS = 10_000; // how often a screen reader may hear of a change
const REOPEN_MS = 5_000;

const root = document.documentElement;
const byId = (id) => document.getElementById(id);
const texts = new Map();
const cells = new Map();

// Cells: a text each; those of time carry an instant and are written in the reader's zone.

let zone = recall("zone") === "local" ? "local" : "UTC";

function clock(iso, short) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const shift = zone === "local" ? at.getTimezoneOffset() * 60_000 : 0;
  const shown = new Date(at.getTime() - shift).toISOString();
  return short ? shown.slice(11, 19) : `${shown.slice(0, 10)} ${shown.slice(11, 19)}`;
}

function zoneName() {
  if (zone === "UTC") return "UTC";
  const minutes = -new Date().getTimezoneOffset();
  const pad = (n) => String(Math.floor(Math.abs(n))).padStart(2, "0");
  return `${minutes < 0 ? "−" : "+"}${pad(minutes / 60)}:${pad(minutes % 60)}`;
}

function write(element, text) {
  const time = element.querySelector("time");
  if (time) {
    time.dateTime = text;
    text = clock(text, "clock" in element.dataset);
  }
  const link = element.querySelector("a");
  if (link) link.setAttribute("href", `devices/${encodeURIComponent(text.split("/")[0])}`);
  const holder = time ?? link ?? element;
  if (holder.textContent !== text) holder.textContent = text;
}

function adopt(scope) {
  for (const element of scope.querySelectorAll("[data-cell]")) {
    const known = cells.get(element.dataset.cell);
    if (known) known.add(element);
    else cells.set(element.dataset.cell, new Set([element]));
  }
}

const each = (id, act) => cells.get(id)?.forEach(act);

function patchTexts(changed) {
  for (const [id, text] of Object.entries(changed)) {
    if (text === null) texts.delete(id);
    else {
      texts.set(id, text);
      each(id, (element) => write(element, text));
    }
  }
}

function patchTones(changed) {
  for (const [id, tone] of Object.entries(changed)) {
    each(id, (element) => (tone === null ? delete element.dataset.tone : (element.dataset.tone = tone)));
  }
}

function patchPlots(changed) {
  for (const [id, svg] of Object.entries(changed)) {
    const fresh = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
    document.querySelector(`[data-plot="${CSS.escape(id)}"]`)?.replaceChildren(fresh);
  }
}

// Rows: they come and go by themselves, but never under the hand or the eye of a reader.

const wanted = new Map();

function busy(table) {
  const selection = document.getSelection();
  const selected = selection && !selection.isCollapsed && selection.containsNode(table, true);
  return selected || table.matches(":hover, :focus-within");
}

function patchRows(changed) {
  for (const [id, keys] of Object.entries(changed)) if (keys) wanted.set(id, keys);
  for (const id of wanted.keys()) settle(id);
}

function settle(id) {
  const table = document.querySelector(`[data-table="${CSS.escape(id)}"]`);
  if (!table) return;
  const keys = wanted.get(id);
  const shown = new Set([...table.querySelectorAll("tbody tr")].map((row) => row.dataset.key));
  const fresh = keys.filter((key) => !shown.has(key)).length;
  const gone = [...shown].filter((key) => !keys.includes(key)).length;
  const waiting = Math.max(fresh, gone);
  const button = table.querySelector(".changed");
  if (waiting && shown.size && busy(table)) {
    button.textContent = `${waiting} changed, show`;
    button.hidden = false;
  } else arrange(table, keys);
}

function arrange(table, keys) {
  const body = table.querySelector("tbody");
  const rows = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  for (const [key, row] of rows) if (!keys.includes(key)) discard(row);
  keys.forEach((key, position) => {
    const row = rows.get(key) ?? makeRow(table, key);
    if (body.rows[position] !== row) body.insertBefore(row, body.rows[position] ?? null);
  });
  table.querySelector(".changed").hidden = true;
  table.querySelector(".empty").hidden = keys.length > 0;
  wanted.delete(table.dataset.table);
}

function makeRow(table, key) {
  const row = table.querySelector("template").content.firstElementChild.cloneNode(true);
  row.dataset.key = key;
  for (const element of row.children) {
    const id = `${table.dataset.table}/${key}/${element.dataset.column}`;
    element.dataset.cell = id;
    write(element, texts.get(id) ?? "");
  }
  adopt(row);
  return row;
}

function discard(row) {
  for (const element of row.children) cells.delete(element.dataset.cell);
  row.remove();
}

// The stream: one connection, closed while paused or hidden, opened again by itself.

let stream = null;
let paused = false;
let since = "";
let lastFrame = 0;
let announced = 0;
let hiddenTimer = 0;

function show(state, text) {
  const live = byId("live");
  live.dataset.state = state;
  if (live.textContent !== text) live.textContent = text;
}

function apply(frame) {
  if (frame.shape !== root.dataset.shape) return location.reload();
  patchTexts(frame.texts ?? {});
  patchRows(frame.rows ?? {});
  patchTones(frame.tones ?? {});
  patchPlots(frame.plots ?? {});
  lastFrame = Date.now();
  since = texts.get("as-of") ?? "";
  show("live", "● live");
  announce();
}

function announce() {
  const text = texts.get("health") ?? "";
  const status = byId("status");
  if (status.textContent === text || Date.now() - announced < STATUS_MS) return;
  announced = Date.now();
  status.textContent = text;
}

function open() {
  if (stream || paused) return;
  stream = new EventSource("api/stream");
  stream.addEventListener("patch", (event) => apply(JSON.parse(event.data)));
  stream.addEventListener("error", () => {
    lost();
    if (stream?.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    close();
    setTimeout(open, REOPEN_MS * (1 + Math.random()));
  });
}

function close() {
  stream?.close();
  stream = null;
}

function lost() {
  show("lost", since ? `■ no news since ${clock(since, true)}` : "■ no connection");
}

function toggle() {
  paused = !paused;
  byId("pause").textContent = paused ? "Resume" : "Pause";
  if (paused) {
    close();
    show("paused", since ? `‖ paused since ${clock(since, true)}` : "‖ paused");
  } else {
    show("still", "○ connecting");
    open();
  }
}

function watchVisibility() {
  clearTimeout(hiddenTimer);
  if (!document.hidden) open();
  else hiddenTimer = setTimeout(close, HIDDEN_LIMIT_MS);
}

// Wishes: kept in this browser, applied at once.

function recall(name) {
  try {
    return localStorage.getItem(`poller.${name}`);
  } catch {
    return null; // storage may be forbidden; the default does
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`poller.${name}`, value);
  } catch {
    // as above
  }
}

function setZone(chosen) {
  zone = chosen;
  keep("zone", zone);
  byId("zone").textContent = zone === "UTC" ? "Local time" : "UTC";
  for (const element of document.querySelectorAll("[data-zone]")) element.textContent = zoneName();
  for (const time of document.querySelectorAll("[data-cell] time")) {
    time.textContent = clock(time.dateTime, Boolean(time.closest("[data-clock]")));
  }
}

function setTheme(event) {
  const link = event.target.closest("[data-theme-choice]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  root.dataset.theme = link.dataset.themeChoice;
  document.cookie = `poller_theme=${root.dataset.theme}; max-age=31536000; path=/; samesite=strict`;
  for (const other of document.querySelectorAll("[data-theme-choice]")) other.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
}

function start() {
  adopt(document);
  byId("pause").hidden = false;
  byId("zone").hidden = !document.querySelector("[data-zone]");
  byId("pause").addEventListener("click", toggle);
  byId("zone").addEventListener("click", () => setZone(zone === "UTC" ? "local" : "UTC"));
  document.querySelector(".themes").addEventListener("click", setTheme);
  for (const button of document.querySelectorAll(".changed")) {
    const table = button.closest("[data-table]");
    button.addEventListener("click", () => arrange(table, wanted.get(table.dataset.table)));
  }
  setZone(zone);
  document.addEventListener("visibilitychange", watchVisibility);
  setInterval(() => stream && since && Date.now() - lastFrame > SILENCE_MS && lost(), 1_000);
  open();
}

start();
