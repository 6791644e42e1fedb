// The Python of a page: a worker (live-worker.mjs) that starts at the first Run.
{
  const here = document.currentScript.src;

  window.liveCells.Engine = class {
    constructor(source, root) {
      this.worker = new Worker(new URL("live-worker.mjs", here), { type: "module" });
      this.serial = 0;
      /** Fulfilled once Python has started. */
      this.ready = new Promise((resolve, reject) => {
        this.worker.onerror = () => reject(new Error("the browser could not start it"));
        this.worker.onmessage = ({ data }) =>
          data.type === "ready" ? resolve() : reject(new Error(data.text));
      });
      this.worker.postMessage({
        type: "start",
        source: source.href,
        archive: new URL("lnres_utils.zip", root).href,
      });
    }

    /**
     * One run of some code; `receive` gets what it shows. Resolves to "good", "check" (a check has
     * not passed, and its report was shown) or "error".
     */
    execute(code, receive) {
      const id = ++this.serial;
      return new Promise((resolve, reject) => {
        this.worker.onerror = (event) => reject(new Error(event.message || "Python has stopped"));
        this.worker.onmessage = ({ data }) => {
          if (data.id !== id) return;
          if (data.type === "done") resolve(data.outcome);
          else receive(data.type, data.text);
        };
        this.worker.postMessage({ type: "run", id, code });
      });
    }

    stop() {
      this.worker.terminate();
    }
  };
}
