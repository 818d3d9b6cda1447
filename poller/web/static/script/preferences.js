// The frame of every page. A page is complete without this file: it adds live cells, keys and copying.
// The parts are joined into one module in the order of poller/web/assets.py.

const root = document.documentElement;
const byId = (id) => document.getElementById(id);
const site = new URL(root.dataset.root, document.baseURI); // the overview

// Preferences are stored in this browser and applied at once.

let zone = recall("zone") === "local" ? "local" : "UTC";

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

// Only a <time> whose text is an instant is rewritten; one with an age, such as "3 m", is left alone.

const INSTANT = /^(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d$/;

function showTimes(scope) {
  for (const element of scope.querySelectorAll("[data-zone]")) element.textContent = zoneName();
  for (const time of scope.querySelectorAll("time")) {
    if (!INSTANT.test(time.textContent)) continue;
    const text = clock(time.dateTime, Boolean(time.closest("[data-clock]")));
    if (time.textContent !== text) time.textContent = text;
  }
}

function setZone(chosen) {
  zone = chosen;
  store("zone", zone);
  byId("zone").textContent = zone === "UTC" ? "Local time" : "UTC";
  showTimes(document);
}

function setTheme(theme) {
  root.dataset.theme = theme;
  document.cookie = `poller_theme=${theme}; max-age=31536000; path=/; samesite=strict`;
  for (const link of document.querySelectorAll("[data-theme-choice]")) {
    if (link.dataset.themeChoice === theme) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

function chooseTheme(event) {
  const link = event.target.closest("[data-theme-choice]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  setTheme(link.dataset.themeChoice);
}

function nextTheme() {
  const themes = [...document.querySelectorAll("[data-theme-choice]")].map((link) => link.dataset.themeChoice);
  setTheme(themes[(themes.indexOf(root.dataset.theme) + 1) % themes.length]);
}
