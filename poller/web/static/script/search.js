// Lists that are searched while somebody types, parts that are loaded apart, and strips of a day.

const TYPING_MS = 250;

let typing = 0;
let asked = 0;
let completed = 0;

function searchLive(input) {
  clearTimeout(typing);
  typing = setTimeout(() => search(input), TYPING_MS);
  complete(input);
}

async function search(input) {
  const address = new URL(input.form.action);
  for (const [name, value] of new FormData(input.form)) if (value) address.searchParams.append(name, value);
  const number = ++asked;
  const answer = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer || number !== asked) return; // a later search is on its way
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById("found");
  if (!fresh) return;
  showTimes(fresh);
  byId("found").replaceChildren(...document.importNode(fresh, true).childNodes);
  history.replaceState(null, "", address);
  document.dispatchEvent(new CustomEvent("poller:read"));
}

// The list of completions has whole texts, because a browser replaces the whole field.
async function complete(input) {
  const list = input.list;
  if (!list?.dataset.completions) return;
  const [, before, word] = input.value.match(/^(.*\s)?(\S*)$/s) ?? [];
  const address = new URL(list.dataset.completions, document.baseURI);
  address.searchParams.set("word", word ?? "");
  const number = ++completed;
  const answer = await fetch(address).catch(() => null);
  if (!answer?.ok || number !== completed) return; // a later word is on its way
  const words = await answer.json();
  list.replaceChildren(...words.map((each) => Object.assign(document.createElement("option"), { value: (before ?? "") + each })));
}

async function loadFragments() {
  for (const place of document.querySelectorAll("[data-fragment]:not([data-loaded])")) {
    place.dataset.loaded = "";
    const answer = await fetch(place.dataset.fragment, { headers: { Accept: "text/html" } }).catch(() => null);
    if (!answer?.ok) continue;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("fragment");
    for (const link of fresh?.querySelectorAll("a[href]") ?? []) {
      link.setAttribute("href", new URL(link.getAttribute("href"), answer.url).href);
    }
    if (fresh) place.replaceChildren(document.importNode(fresh, true));
  }
}

async function loadStrips() {
  const places = [...document.querySelectorAll("[data-strip]:empty")];
  if (!places.length) return;
  const address = new URL("devices/-/strips", site);
  for (const place of places) address.searchParams.append("name", place.dataset.strip);
  const answer = await fetch(address).catch(() => null);
  if (!answer?.ok) return;
  const pictures = await answer.json();
  for (const place of places) {
    const svg = pictures[place.dataset.strip];
    if (svg) place.replaceChildren(new DOMParser().parseFromString(svg, "text/html").querySelector("svg"));
  }
}

function loadApart() {
  loadFragments();
  loadStrips();
}

document.addEventListener("input", (event) => event.target.matches("[data-live-search]") && searchLive(event.target));
document.addEventListener("poller:read", loadApart);
loadApart();
