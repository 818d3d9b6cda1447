// The start of every page. A page of nobody has no frame to keep up to date.

function clicked(event) {
  const button = event.target.closest("button");
  if (button?.matches("[data-copy]")) copyBeside(button);
  else if (button?.matches(".changed")) showChanged(button);
}

function start() {
  adopt(document);
  live = connect();
  for (const id of ["pause", "keys-help"]) byId(id).hidden = false;
  byId("zone").hidden = !document.querySelector("[data-zone]");
  byId("pause").addEventListener("click", toggle);
  byId("zone").addEventListener("click", () => setZone(zone === "UTC" ? "local" : "UTC"));
  byId("keys-help").addEventListener("click", showKeys);
  byId("keys-on").addEventListener("change", (event) => setKeys(event.target.checked));
  document.querySelector(".themes").addEventListener("click", chooseTheme);
  document.addEventListener("click", clicked);
  document.addEventListener("change", (event) => event.target.matches("[data-fills] input") && fillFrom(event.target));
  document.addEventListener("keydown", pressed);
  document.addEventListener("poller:read", showCopyButtons);
  document.addEventListener("visibilitychange", watchVisibility);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && open());
  setInterval(() => joined && since && Date.now() - lastFrame > SILENCE_MS && lost(), 1_000);
  const here = document.querySelector(".rooms [aria-current]"); // on a phone the pages are one line that scrolls
  if (here) here.closest("nav").scrollLeft = here.offsetLeft - 16;
  showCopyButtons();
  showFileInputs();
  setZone(zone);
  open();
}

start();
