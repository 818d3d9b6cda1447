// The worker that all pages of a browser share: one stream for any number of tabs, because a browser
// opens only six connections to a host. A page that joins gets everything that was sent so far.

const PARTS = ["texts", "tones", "rows", "plots"];
const pages = new Set();
let state = null;
let stream = null;

function merge(frame) {
  if (state?.shape !== frame.shape) state = { shape: frame.shape };
  for (const part of PARTS) {
    const known = (state[part] ??= {});
    for (const [id, value] of Object.entries(frame[part] ?? {})) {
      if (value === null) delete known[id];
      else known[id] = value;
    }
  }
}

const tell = (message) => pages.forEach((page) => page.postMessage(message));

function patched(frame) {
  merge(frame);
  tell({ frame });
}

function lost() {
  state = null;
  tell({ lost: true });
}

function join(page, address) {
  stream ??= new Stream(address, patched, lost);
  const isNew = !pages.has(page);
  pages.add(page);
  stream.open();
  if (isNew && state) page.postMessage({ frame: state });
}

function leave(page) {
  pages.delete(page);
  if (pages.size) return;
  stream?.close();
  state = null;
}

self.addEventListener("connect", (event) => {
  const page = event.ports[0];
  page.addEventListener("message", ({ data }) => (data.open ? join(page, data.open) : leave(page)));
  page.start();
});
