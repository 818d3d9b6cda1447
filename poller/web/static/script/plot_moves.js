// Zoom and pan: by drag, wheel, keys and fingers. A move is shown at once and read from the server
// when it ends, so that a closer look has finer points.

const SHORTEST_MS = 5 * 60_000;
const LONGEST_MS = 730 * 86_400_000;

function clipRange(start, end) {
  const length = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, end - start));
  const last = Math.min(Date.now(), (start + end) / 2 + length / 2);
  return [Math.round(last - length), Math.round(last)];
}

function rangeOf(u) {
  return [u.scales.x.min * 1000, u.scales.x.max * 1000];
}

function zoomedBy(u, factor, share = 0.5) {
  const [start, end] = rangeOf(u);
  const at = start + (end - start) * share;
  return clipRange(at - (at - start) * factor, at + (end - at) * factor);
}

function pannedBy(u, share) {
  const [start, end] = rangeOf(u);
  const shift = (end - start) * share;
  return clipRange(start + shift, end + shift);
}

function moveCrosshair(u, step) {
  const count = u.data[0].length;
  const isKnown = (at) => u.data.some((cells, n) => n % 3 === 1 && typeof cells[at] === "number");
  let index = u.cursor.idx ?? (step > 0 ? -1 : count);
  do index += step;
  while (index >= 0 && index < count && !isKnown(index));
  if (index < 0 || index >= count) return;
  u.setCursor({ left: u.valToPos(u.data[0][index], "x"), top: u.over.clientHeight / 2 }, true, true);
}

function bindKeys(u, move, back) {
  const root = u.root.parentElement;
  const acts = {
    ArrowLeft: (event) => (event.shiftKey ? move(pannedBy(u, -0.25)) : moveCrosshair(u, -1)),
    ArrowRight: (event) => (event.shiftKey ? move(pannedBy(u, 0.25)) : moveCrosshair(u, 1)),
    "+": () => move(zoomedBy(u, 0.5)),
    "=": () => move(zoomedBy(u, 0.5)),
    "-": () => move(zoomedBy(u, 2)),
    0: () => back(),
    Escape: () => u.setCursor({ left: -10, top: -10 }, true, true),
  };
  root.onkeydown = (event) => {
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    act(event);
  };
}

// One finger or shift and the mouse pans, two fingers zoom.
function bindPointers(u, show, move) {
  const down = new Map();
  let begun = null; // since the last finger came or went
  let before = ""; // the range before the first finger
  const share = (x) => (x - u.over.getBoundingClientRect().left) / u.over.clientWidth;
  const shares = () => [...down.values()].map(share);
  const begin = () => (begun = down.size ? { range: rangeOf(u), shares: shares() } : null);
  const moves = (event) => event.pointerType === "touch" || event.shiftKey;
  u.over.addEventListener("pointerdown", (event) => {
    if (!moves(event)) return;
    if (!down.size) before = String(rangeOf(u));
    down.set(event.pointerId, event.clientX);
    u.over.setPointerCapture(event.pointerId);
    begin();
  });
  u.over.addEventListener("pointermove", (event) => {
    if (!down.has(event.pointerId)) return;
    down.set(event.pointerId, event.clientX);
    show(...rangeUnder(begun, shares()));
  });
  for (const name of ["pointerup", "pointercancel"]) {
    u.over.addEventListener(name, (event) => {
      if (!down.delete(event.pointerId)) return;
      if (!down.size && String(rangeOf(u)) !== before) move(clipRange(...rangeOf(u)));
      begin();
    });
  }
  u.root.addEventListener("mousedown", (event) => event.shiftKey && event.stopImmediatePropagation(), true);
  u.over.addEventListener("dblclick", () => move(zoomedBy(u, 2)));
  u.over.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    move(zoomedBy(u, event.deltaY > 0 ? 1.5 : 1 / 1.5, share(event.clientX)));
  }, { passive: false });
}

// The range for which the instants that were touched are under the fingers again.
function rangeUnder({ range: [start, end], shares: [first, second] }, [now, later]) {
  const at = (share) => start + (end - start) * share;
  if (later === undefined || second === undefined || Math.abs(later - now) < 0.02) {
    const shift = at(first) - at(now);
    return [start + shift, end + shift];
  }
  const length = (at(second) - at(first)) / (later - now);
  const from = at(first) - length * now;
  return length > 0 ? [from, from + length] : [start, end];
}
