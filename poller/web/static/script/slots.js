// The strip of a device: one stop for the Tab key, arrow keys between its slots.

function strideSlots(event) {
  const strip = event.target.closest("[data-slots]");
  const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
  if (!strip || !step || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const links = [...strip.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  links[Math.min(links.length - 1, Math.max(0, at + step))].focus();
}

function settleSlots() {
  for (const strip of document.querySelectorAll("[data-slots]")) {
    const links = [...strip.querySelectorAll("a")];
    const stop = links.find((link) => link === document.activeElement || link.ariaCurrent) ?? links.at(-1);
    for (const link of links) link.tabIndex = link === stop ? 0 : -1;
  }
}

document.addEventListener("keydown", strideSlots);
document.addEventListener("focusin", (event) => event.target.closest("[data-slots]") && settleSlots());
document.addEventListener("poller:read", settleSlots);
settleSlots();
