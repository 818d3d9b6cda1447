// One connection to the stream. It reopens after an error; `open` and `close` may be called at any time.

const REOPEN_MS = 5_000;

class Stream {
  constructor(address, onPatch, onLost) {
    Object.assign(this, { address, onPatch, onLost, source: null, timer: 0, wanted: false });
  }

  open() {
    this.wanted = true;
    if (this.source) return;
    this.source = new EventSource(this.address);
    this.source.addEventListener("patch", (event) => this.onPatch(JSON.parse(event.data)));
    this.source.addEventListener("error", () => this.failed());
  }

  failed() {
    this.onLost();
    if (this.source?.readyState !== EventSource.CLOSED) return; // the browser reconnects
    this.drop();
    this.timer = setTimeout(() => this.wanted && this.open(), REOPEN_MS * (1 + Math.random()));
  }

  close() {
    this.wanted = false;
    this.drop();
  }

  drop() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }
}
