// <ln-epsilon>: the standard deviation after normalization, with epsilon under the root and outside.
customElements.define("ln-epsilon", class extends HTMLElement {
  connectedCallback() {
    const { make, slider, svg } = window.lnDemo;
    const power = (exponent) => this.scientific(10 ** exponent);
    const sliders = [
      slider("epsilon ε", { min: -12, max: -1, step: 1, value: -5, format: power }, () => this.draw()),
      slider("input std s", { min: -7, max: 1, step: 0.01, value: -3, format: power }, () => this.draw()),
    ];
    this.inputs = sliders.map(({ input }) => input);
    this.picture = svg("svg", { viewBox: "0 0 400 232", "aria-hidden": "true" });
    this.text = make("output", {
      class: "ln-demo-text", for: this.inputs.map(({ id }) => id).join(" "),
    });
    this.className = "ln-demo";
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "Output standard deviation for small inputs");
    this.replaceChildren(make("div", { class: "ln-demo-controls" }, ...sliders.map(({ row }) => row)),
      this.picture, this.text);
    this.draw();
  }

  // 0.00178 as 1.8e-3: two digits, written as in the lesson.
  scientific(value) {
    return value < 0.1 ? value.toExponential(1).replace(".0", "") : String(Number(value.toPrecision(2)));
  }

  draw() {
    const { number } = window.lnDemo;
    const [eps, s] = this.inputs.map((input) => 10 ** input.valueAsNumber);
    const inside = (std) => std / Math.sqrt(std * std + eps);
    const outside = (std) => std / (std + eps);
    const at = { x: this.across(Math.log10(s)), inside: this.up(inside(s)), outside: this.up(outside(s)) };
    this.picture.replaceChildren(
      ...this.frame(),
      this.curve(inside, {}),
      this.curve(outside, { "stroke-dasharray": "6 4" }),
      ...this.markers(at));
    this.text.textContent = `Input std ${this.scientific(s)}, epsilon ${this.scientific(eps)}. ` +
      `Output std with epsilon inside the root: ${number(inside(s), 3)}; ` +
      `outside the root: ${number(outside(s), 3)}.`;
  }

  // Places in the picture: s from 1e-7 to 10 on a log scale, the output from 0 to 1.
  across(exponent) { return 40 + (exponent + 7) * 43; }
  up(value) { return 170 - value * 140; }

  curve(output, style) {
    const points = Array.from({ length: 161 }, (_, i) => -7 + i / 20).map((exponent) =>
      `${this.across(exponent).toFixed(1)},${this.up(output(10 ** exponent)).toFixed(1)}`);
    return window.lnDemo.svg("polyline", {
      points: points.join(" "), fill: "none", stroke: "currentColor", "stroke-width": 2, ...style });
  }

  frame() {
    const { svg } = window.lnDemo;
    const label = (x, y, text, anchor = "middle") => svg("text", {
      x, y, "text-anchor": anchor, "font-size": 12, fill: "currentColor" }, text);
    const line = (x1, y1, x2, y2, extra) => svg("line", {
      x1, x2, y1, y2, stroke: "currentColor", ...extra });
    const faint = { "stroke-opacity": 0.35 };
    const exponents = [-6, -4, -2, 0];
    return [
      ...[0.5, 1].map((value) => line(40, this.up(value), 384, this.up(value), faint)),
      ...[0, 0.5, 1].map((value) => label(34, this.up(value) + 4, String(value), "end")),
      ...exponents.map((e) => line(this.across(e), 170, this.across(e), 175)),
      ...exponents.map((e) => label(this.across(e), 189, this.scientific(10 ** e))),
      line(40, 170, 384, 170), line(40, 170, 40, 22),
      label(212, 205, "input standard deviation s"),
      label(40, 14, "output standard deviation", "start"),
      line(40, 223, 66, 223, { "stroke-width": 2 }),
      svg("circle", { cx: 53, cy: 223, r: 4.5, fill: "currentColor" }),
      label(72, 227, "ε inside the root", "start"),
      line(220, 223, 246, 223, { "stroke-width": 2, "stroke-dasharray": "6 4" }),
      this.square(233, 223),
      label(252, 227, "ε outside the root", "start"),
    ];
  }

  markers(at) {
    const { svg } = window.lnDemo;
    return [
      svg("line", { x1: at.x, x2: at.x, y1: 30, y2: 170, stroke: "currentColor",
        "stroke-opacity": 0.6, "stroke-dasharray": "2 3" }),
      this.square(at.x, at.outside),
      svg("circle", { cx: at.x, cy: at.inside, r: 4.5, fill: "currentColor" }),
    ];
  }

  square(x, y) {
    return window.lnDemo.svg("rect", { x: x - 5.5, y: y - 5.5, width: 11, height: 11, fill: "none",
      stroke: "currentColor", "stroke-width": 2 });
  }
});
