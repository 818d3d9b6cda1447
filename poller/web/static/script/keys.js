// Keys. None destroys, none is taken while somebody types, and all can be turned off.

const KEYS_FOR = {
  "/": () => byId("search")?.focus(),
  "?": () => showKeys(),
  ".": () => byId("pause").click(),
  t: () => nextTheme(),
  j: () => moveRow(1),
  k: () => moveRow(-1),
  x: () => markRow(),
  p: () => pollNow(),
  c: () => copyCommand(),
};
const GO_MS = 1_500;

let goUntil = 0;
let keysOn = recall("keys") !== "off";

const rows = () => [...document.querySelectorAll("main table[data-rows] tbody tr, main [data-table] tbody tr")];
const currentRow = () => document.activeElement?.closest?.("main tbody tr");
const isTyping = (target) => target.closest("input:not([type=checkbox]), select, textarea, [contenteditable], dialog");

function pressed(event) {
  if (!keysOn || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const goes = Date.now() < goUntil;
  goUntil = 0;
  if (goes) return goTo(event);
  if (event.key === "g") goUntil = Date.now() + GO_MS;
  else if (event.key === "Enter") openRow(event);
  else if (KEYS_FOR[event.key]) {
    event.preventDefault();
    KEYS_FOR[event.key]();
  }
}

function goTo(event) {
  const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
  if (!link) return;
  event.preventDefault();
  link.click();
}

function moveRow(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(currentRow());
  const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step));
  all[next].tabIndex = -1;
  all[next].focus();
}

function markRow() {
  currentRow()?.querySelector("input[type=checkbox]")?.click();
}

function openRow(event) {
  if (event.target !== currentRow()) return;
  event.preventDefault();
  currentRow().querySelector("a[href]")?.click();
}

// A button that polls is one of the row, or of the page; a list asks for the row alone.
function pollNow() {
  const row = currentRow();
  const own = (row ?? document).querySelector("[data-poll]");
  const ofList = document.querySelector("button[name=action][value=poll]");
  if (own) own.click();
  else if (row && ofList) {
    for (const box of document.querySelectorAll("[data-bulk] input[type=checkbox]")) box.checked = row.contains(box);
    ofList.click();
  }
}

async function copyCommand() {
  const text = currentRow()?.dataset.command ?? document.querySelector("main .command code")?.textContent;
  if (text && (await copy(text))) byId("status").textContent = `Copied: ${text}`;
}

function showKeys() {
  byId("keys-on").checked = keysOn;
  byId("keys").showModal();
}

function setKeys(on) {
  keysOn = on;
  store("keys", on ? "on" : "off");
}
