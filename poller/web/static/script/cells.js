// Cells have one text each, which the stream patches. A time cell holds an instant.

const texts = new Map();
const cells = new Map();

function write(element, text) {
  const time = element.querySelector("time");
  if (time) {
    time.dateTime = text;
    text = clock(text, "clock" in element.dataset);
  }
  const link = element.querySelector("a");
  if (link?.matches("[data-where]")) link.setAttribute("href", `devices?where=${encodeURIComponent(text)}`);
  else if (link) link.setAttribute("href", `devices/${encodeURIComponent(text.split("/")[0])}`);
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
    const place = document.querySelector(`[data-plot="${CSS.escape(id)}"]`);
    const fresh = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
    place?.replaceChildren(fresh);
  }
}

// The title of a tab begins with the failing count, on every page.

function patchTitle() {
  const name = document.querySelector("title").dataset.name;
  const title = texts.get("title");
  if (!name || title === undefined) return;
  const text = title.replace(/poller$/, name);
  if (document.title !== text) document.title = text;
}
