// Plots that zoom. The page is complete without this file and without the library: then the pictures
// of the server stay, and links zoom and pan.

const box = document.getElementById("plots");
const plots = new Map(); // id -> uPlot
let home = null; // the range of the page as it was opened
let asking = null;

const figureOf = (id) => box.querySelector(`[data-plot-id="${CSS.escape(id)}"]`);
const all = (act) => plots.forEach(act);

function addStyle() {
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = box.dataset.libraryStyle;
  document.head.append(style);
}

function addLibrary() {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = box.dataset.library;
    script.onload = resolve;
    script.onerror = () => reject(new Error("the library of plots was not loaded"));
    document.head.append(script);
  });
}

async function ask(address) {
  asking?.abort();
  asking = new AbortController();
  const answer = await fetch(address, { signal: asking.signal });
  if (!answer.ok) throw new Error(`the plots cannot be read: ${answer.status}`);
  return answer.json();
}

function draw(plot) {
  const figure = figureOf(plot.id);
  if (!figure) return;
  plots.get(plot.id)?.destroy();
  const element = figure.querySelector(".drawn");
  element.hidden = false;
  figure.querySelector("[data-server]").hidden = true;
  element.tabIndex = 0;
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", `${plot.title}: plot. Arrow keys move the crosshair, + and - zoom.`);
  const u = drawPlot(element, plot, {
    setCursor: [(drawn) => tell(figure, plot, drawn)],
    setSelect: [(drawn) => selected(drawn)],
  });
  plots.set(plot.id, u);
  bindKeys(u, move, () => move(home));
  bindPointers(u, showRange, move);
  const png = figure.querySelector("[data-png]");
  png.hidden = false;
  png.onclick = () => savePicture(u, plot);
}

function selected(u) {
  if (u.select.width < 5) return;
  const at = (x) => u.posToVal(x, "x") * 1000;
  const range = clipRange(at(u.select.left), at(u.select.left + u.select.width));
  u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  move(range);
}

// The values at the crosshair, in the legend of every plot. A gap has none, whatever is beside it.
function tell(figure, plot, u) {
  const index = u.cursor.idx;
  const cells = figure.querySelectorAll("tbody [data-at]");
  const isShown = index !== null && index !== undefined && u.cursor.left >= 0;
  for (const cell of figure.querySelectorAll("[data-at]")) cell.hidden = !isShown;
  if (!isShown) return;
  const at = u.posToVal(u.cursor.left, "x") * 1000;
  const isKnown = !inGap(plot, u, at);
  cells.forEach((cell, number) => {
    cell.textContent = valueText(plot, isKnown ? u.data[3 * number + 1]?.[index] : null);
  });
  const shown = new Date(isKnown ? u.data[0][index] * 1000 : at);
  figure.querySelector("thead [data-at]").textContent = shown.toISOString().replace("T", " ").slice(0, 19);
}

// Whether an instant is more than a pixel inside a gap.
function inGap(plot, u, at) {
  const pixel = (1000 * (u.scales.x.max - u.scales.x.min)) / u.over.clientWidth;
  return plot.gaps.some(([start, end]) => at > start + pixel && at < end - pixel);
}

function showRange(start, end) {
  all((u) => u.setScale("x", { min: start / 1000, max: end / 1000 }));
}

async function move([start, end]) {
  showRange(start, end);
  const address = new URL(location.href);
  address.searchParams.delete("range");
  address.searchParams.set("from", start);
  address.searchParams.set("until", end);
  address.hash = "";
  history.replaceState(null, "", address);
  await readAll(address.search).catch(failed);
}

async function readAll(search) {
  const data = new URL(box.dataset.source, location.href);
  data.search = search;
  const [found, page] = await Promise.all([ask(data), fetch(location.href).then((answer) => answer.text())]);
  takeTexts(new DOMParser().parseFromString(page, "text/html"));
  found.plots.forEach(draw);
}

// Links, legends and files of the new range are those of the server.
function takeTexts(page) {
  const ids = (root) => [...root.querySelectorAll("[data-plot-id]")].map((figure) => figure.id);
  if (String(ids(page)) !== String(ids(box))) takeFigures(page);
  for (const selector of ["[data-ranges]", "#read", "#table"]) replace(document, page, selector);
  for (const figure of box.querySelectorAll("[data-plot-id]")) {
    const fresh = page.getElementById(figure.id);
    if (!fresh) continue;
    for (const selector of [".legend-table", ".notes", ".files", "[data-server]"]) replace(figure, fresh, selector);
  }
}

// Another range may have other plots, or none.
function takeFigures(page) {
  all((u) => u.destroy());
  plots.clear();
  const hadFocus = box.contains(document.activeElement);
  box.replaceChildren(...document.importNode(page.getElementById("plots"), true).childNodes);
  if (hadFocus) box.querySelector("a")?.focus();
}

function replace(old, fresh, selector) {
  const [here, there] = [old.querySelector(selector), fresh.querySelector(selector)];
  if (here && there) here.replaceWith(document.importNode(there, true));
}

function failed(error) {
  if (error.name === "AbortError") return;
  document.getElementById("read").textContent = `${error.message}. Reload the page to see the pictures of the server.`;
}

function savePicture(u, plot) {
  const from = u.ctx.canvas;
  const ratio = devicePixelRatio || 1;
  const canvas = document.createElement("canvas");
  const head = 24 * ratio;
  canvas.width = from.width;
  canvas.height = from.height + head;
  const ctx = canvas.getContext("2d");
  ctx.fillStyle = getComputedStyle(document.body).backgroundColor;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = getComputedStyle(document.body).color;
  ctx.font = `${14 * ratio}px system-ui, sans-serif`;
  const names = plot.lines.map((line) => line.name).join(", ");
  ctx.fillText(`${document.querySelector("h1").textContent} ${plot.title}: ${names}`, 8 * ratio, 17 * ratio);
  ctx.drawImage(from, 0, head);
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${plot.id}.png`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

function resized() {
  all((u) => u.setSize({ width: u.root.parentElement.clientWidth, height: HEIGHT }));
}

async function startPlots() {
  if (!box?.dataset.library) return;
  addStyle();
  const [found] = await Promise.all([ask(new URL(box.dataset.source, location.href)), addLibrary()]);
  box.setAttribute("data-keep", ""); // the frame leaves drawn plots alone
  found.plots.forEach(draw);
  if (!found.plots.length) return;
  home = [found.plots[0].start, found.plots[0].end];
  document.querySelector(".plot-help").hidden = false;
  new ResizeObserver(resized).observe(box);
  const again = () => readAll(location.search).catch(failed);
  new MutationObserver(again).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  document.addEventListener("poller:read", again);
}

startPlots().catch(failed);
