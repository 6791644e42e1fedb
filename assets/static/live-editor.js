// The editor of a live cell: a text area that keeps and changes indentation, and keeps what was
// typed while the tab is open (in sessionStorage, under the address of the page).
//
// Tab and Shift+Tab move the focus, as everywhere on the page; Ctrl+] and Ctrl+[ and two buttons
// indent instead. The buttons serve phones, and keyboards on which brackets need AltGr.
window.liveCells = {};
{
  const INDENT = "    ";

  window.liveCells.Editor = class {
    constructor(number, original, { make, onRun }) {
      this.original = original;
      this.onRun = onRun;
      this.key = `live ${location.pathname} ${number}`;
      const id = `live-editor-${number}`;
      this.area = make("textarea", {
        id, "aria-describedby": `${id}-keys`, spellcheck: "false", autocapitalize: "off", wrap: "off",
      });
      this.indent = make("button", { type: "button", class: "live-indent" }, "Indent");
      this.unindent = make("button", { type: "button", class: "live-unindent" }, "Unindent");
      this.element = make("div", { class: "live-editing", hidden: "" },
        make("label", { for: id }, "Your version of this cell"), ". ",
        make("span", { id: `${id}-keys` },
          "Shift+Enter runs it; Ctrl+] and Ctrl+[ indent and unindent the selected lines."),
        this.area, make("div", { class: "live-bar" }, this.indent, this.unindent));
      this.area.addEventListener("keydown", (event) => this.onKey(event));
      this.area.addEventListener("input", () => this.changed());
      this.indent.addEventListener("click", () => this.shift(1));
      this.unindent.addEventListener("click", () => this.shift(-1));
    }

    get isOpen() {
      return !this.element.hidden;
    }

    get text() {
      return this.isOpen ? this.area.value : this.original;
    }

    open(text = this.original) {
      this.element.hidden = false;
      this.area.value = text;
      this.fit();
    }

    /** Close it and forget what was typed. */
    reset() {
      this.element.hidden = true;
      this.store(null);
    }

    /** Open it again with what was typed before a reload, if this is still the same cell. */
    restore() {
      try {
        const [original, text] = JSON.parse(sessionStorage.getItem(this.key)) || [];
        if (original !== this.original) return false;
        this.open(text);
        return true;
      } catch {
        return false; // a browser may keep nothing
      }
    }

    store(text) {
      try {
        if (text === null) sessionStorage.removeItem(this.key);
        else sessionStorage.setItem(this.key, JSON.stringify([this.original, text]));
      } catch { /* nothing is kept then */ }
    }

    changed() {
      this.fit();
      this.store(this.area.value);
    }

    fit() {
      this.area.rows = Math.max(2, this.area.value.split("\n").length);
    }

    onKey(event) {
      const { key } = event;
      const control = (event.ctrlKey || event.metaKey) && !event.altKey; // AltGr is Ctrl+Alt
      if (key === "Enter" && !event.isComposing) {
        event.preventDefault();
        if (event.shiftKey) this.onRun();
        else this.breakLine();
      } else if (control && (key === "]" || key === "[")) {
        event.preventDefault();
        this.shift(key === "]" ? 1 : -1);
      }
    }

    breakLine() {
      const { value, selectionStart, selectionEnd } = this.area;
      const line = value.slice(0, selectionStart).split("\n").pop();
      const indent = line.match(/^ */)[0] + (line.trimEnd().endsWith(":") ? INDENT : "");
      this.replace(selectionStart, selectionEnd, `\n${indent}`);
    }

    /** Indent (1) or unindent (-1) the selected lines, or the one of the cursor. */
    shift(direction) {
      const { value, selectionStart: from, selectionEnd: to } = this.area;
      const start = value.lastIndexOf("\n", from - 1) + 1;
      // A selection that ends at the start of a line does not mean that line.
      const last = to > from && value[to - 1] === "\n" ? to - 1 : to;
      const end = value.indexOf("\n", last) < 0 ? value.length : value.indexOf("\n", last);
      const before = value.slice(start, end).split("\n");
      const after = before.map((line) =>
        direction > 0 ? line && INDENT + line : line.replace(/^ {1,4}/, ""));
      // In an empty line the cursor alone goes in.
      if (direction > 0 && before.length === 1 && !before[0]) after[0] = INDENT;
      this.area.focus();
      if (after.join("\n") !== before.join("\n")) this.replace(start, end, after.join("\n"));
      const first = Math.max(start, from + after[0].length - before[0].length);
      const change = after.join("\n").length - (end - start);
      this.area.setSelectionRange(first, from === to ? first : to + change);
    }

    replace(from, to, text) {
      this.area.setSelectionRange(from, to);
      // Unlike setRangeText this can be undone with Ctrl+Z.
      if (!text || !document.execCommand("insertText", false, text)) {
        this.area.setRangeText(text, from, to, "end");
      }
      this.changed();
    }
  };
}
