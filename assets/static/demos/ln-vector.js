// <ln-vector>: four features on sliders; their mean, variance and normalized values.
customElements.define("ln-vector", class extends HTMLElement {
  connectedCallback() {
    const { make, slider, svg, number } = window.lnDemo;
    const start = [1, 2, 3, -2];
    const eps = 1e-5;
    const sliders = start.map((value, i) => slider(`feature ${i + 1}`,
      { min: -3, max: 3, step: 0.1, value, format: (x) => number(x, 1) }, () => this.draw()));
    this.picture = svg("svg", { viewBox: "0 0 400 190", "aria-hidden": "true" });
    this.text = make("output", { class: "ln-demo-text", for: sliders.map(({ input }) => input.id).join(" ") });
    this.state = { eps, inputs: sliders.map(({ input }) => input) };
    this.className = "ln-demo";
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "Layer normalization of four features");
    this.replaceChildren(make("div", { class: "ln-demo-controls" }, ...sliders.map(({ row }) => row)),
      this.picture, this.text);
    this.draw();
  }

  draw() {
    const { number } = window.lnDemo;
    const { eps, inputs } = this.state;
    const x = inputs.map((input) => input.valueAsNumber);
    const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
    const y = x.map((value) => (value - mean) / Math.sqrt(variance + eps));
    this.picture.replaceChildren(
      ...this.bars("input x", x, 0, { fill: "none" }, mean),
      ...this.bars("normalized", y, 200, { fill: "currentColor", "fill-opacity": 0.75 }, 0));
    this.text.textContent = `mean ${number(mean)}, variance ${number(variance)}, epsilon 0.00001; ` +
      `normalized: ${y.map((value) => number(value)).join(", ")}`;
  }

  // Outlined or filled bars around a zero line, -3 to 3, with a dashed line at the mean.
  bars(title, values, left, style, mean) {
    const { svg, number } = window.lnDemo;
    const height = (value) => 100 - value * 25;
    const line = (y, extra) => svg("line", {
      x1: left + 10, x2: left + 190, y1: y, y2: y, stroke: "currentColor", ...extra });
    const label = (x, y, text) => svg("text", {
      x, y, "text-anchor": "middle", "font-size": 12, fill: "currentColor" }, text);
    return [
      label(left + 100, 14, title),
      ...values.map((value, i) => svg("rect", {
        x: left + 20 + 44 * i, width: 28, y: Math.min(height(value), 100),
        height: Math.abs(value) * 25, stroke: "currentColor", ...style })),
      ...values.map((value, i) => label(left + 34 + 44 * i, 188, number(value))),
      line(100, { "stroke-width": 1 }),
      line(height(mean), { "stroke-width": 1.5, "stroke-dasharray": "5 4" }),
    ];
  }
});
