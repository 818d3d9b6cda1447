// The page is live through the stream of the browser, or its own where there are no shared workers.
// The stream is left while the page is paused, or hidden for a minute.

const HIDDEN_LIMIT_MS = 60_000;
const SILENCE_MS = 5_000; // the page shows a longer time without a frame
const STATUS_MS = 10_000; // the shortest time between two announcements to a screen reader

let live = null;
let paused = false;
let joined = false;
let since = "";
let lastFrame = 0;
let announced = 0;
let hiddenTimer = 0;

function connect() {
  const address = new URL("api/stream", site).href;
  if (typeof SharedWorker === "undefined") return new Stream(address, apply, lost);
  const worker = new SharedWorker(root.dataset.worker, "poller");
  worker.port.addEventListener("message", ({ data }) => joined && (data.frame ? apply(data.frame) : lost()));
  worker.port.start();
  const shared = {
    open: () => worker.port.postMessage({ open: address }),
    close: () => worker.port.postMessage({}),
  };
  worker.addEventListener("error", () => {
    live = new Stream(address, apply, lost);
    if (joined) live.open();
  });
  return shared;
}

function show(state, text) {
  const element = byId("live");
  element.dataset.state = state;
  if (element.textContent !== text) element.textContent = text;
}

// A page of another build, or an overview of another layout, is loaded again.
function isOther(shape) {
  const build = (text) => text.split("-").pop();
  return root.dataset.shape.includes("-") ? shape !== root.dataset.shape : build(shape) !== build(root.dataset.shape);
}

function apply(frame) {
  if (isOther(frame.shape)) return location.reload();
  patchTexts(frame.texts ?? {});
  patchRows(frame.rows ?? {});
  patchTones(frame.tones ?? {});
  patchPlots(frame.plots ?? {});
  patchTitle();
  noteChange(frame);
  lastFrame = Date.now();
  since = texts.get("as-of") ?? "";
  show("live", "● live");
  announce();
  readAgain();
}

function announce() {
  const text = texts.get("health") ?? "";
  const status = byId("status");
  if (status.textContent === text || Date.now() - announced < STATUS_MS) return;
  announced = Date.now();
  status.textContent = text;
}

function open() {
  if (paused) return;
  joined = true;
  live.open();
}

function close() {
  joined = false;
  live.close();
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
