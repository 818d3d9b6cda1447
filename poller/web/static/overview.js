// Patches the cells of the page from the live stream. The page is complete without this file.

const HIDDEN_LIMIT_MS = 60_000; // a hidden tab closes its connection after this time
const SILENCE_MS = 5_000; // the page shows a longer time without a frame
const STATUS_MS = 10_000; // the shortest time between two announcements to a screen reader
const REOPEN_MS = 5_000;

const root = document.documentElement;
const byId = (id) => document.getElementById(id);
const texts = new Map();
const cells = new Map();

// Cells have one text each. A time cell holds an instant and shows it in the chosen time zone.

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
    const elements = cells.get(element.dataset.cell);
    if (elements) elements.add(element);
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

// Rows change by themselves, except in a table that the pointer, the focus or a selection is in.

const pendingRows = new Map(); // table id -> row keys

function busy(table) {
  const selection = document.getSelection();
  const selected = selection && !selection.isCollapsed && selection.containsNode(table, true);
  return selected || table.matches(":hover, :focus-within");
}

function patchRows(changed) {
  for (const [id, keys] of Object.entries(changed)) if (keys) pendingRows.set(id, keys);
  for (const id of pendingRows.keys()) updateRows(id);
}

function updateRows(id) {
  const table = document.querySelector(`[data-table="${CSS.escape(id)}"]`);
  if (!table) return;
  const keys = pendingRows.get(id);
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
  pendingRows.delete(table.dataset.table);
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

// The stream is one connection. It is closed while paused or hidden, and reopened after an error.

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
    if (stream?.readyState !== EventSource.CLOSED) return; // the browser reconnects
    close();
    setTimeout(open, REOPEN_MS * (1 + Math.random()));
  });
}

function close() {
  stream?.close();
  stream = null;
}

function lost() {
  show("lost", since ? `■ no update since ${clock(since, true)}` : "■ no connection");
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

// Settings are stored in this browser and applied at once.

function recall(name) {
  try {
    return localStorage.getItem(`poller.${name}`);
  } catch {
    return null; // the browser may forbid storage
  }
}

function store(name, value) {
  try {
    localStorage.setItem(`poller.${name}`, value);
  } catch {
    // the browser may forbid storage
  }
}

function setZone(chosen) {
  zone = chosen;
  store("zone", zone);
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
    button.addEventListener("click", () => arrange(table, pendingRows.get(table.dataset.table)));
  }
  setZone(zone);
  document.addEventListener("visibilitychange", watchVisibility);
  setInterval(() => stream && since && Date.now() - lastFrame > SILENCE_MS && lost(), 1_000);
  open();
}

start();
