/* Widgets: controls in the place of a static drawing. No library, no network. */
(() => {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";

  function element(name, attributes = {}, text = "") {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  }

  /* A labelled range input; arrow keys, Home and End move it. */
  function slider(label, { min, max, step, value, show }, changed) {
    const input = document.createElement("input");
    Object.assign(input, { type: "range", min, max, step, value });
    const told = document.createElement("output");
    const update = () => {
      told.textContent = show(Number(input.value));
      input.setAttribute("aria-valuetext", told.textContent);
    };
    input.addEventListener("input", () => {
      update();
      changed();
    });
    update();
    const named = document.createElement("label");
    named.append(`${label} `, input, " ", told);
    return { named, value: () => Number(input.value) };
  }

  /* Put values in [0, 1] into the polylines of the static drawing. */
  function redraw(drawing, lines) {
    const [left, top, inner, tall] = [44, 30, 506, 150];
    drawing.querySelectorAll("polyline").forEach((line, index) => {
      const values = lines[index];
      const points = values.map(
        (value, i) =>
          `${(left + (inner * i) / Math.max(values.length - 1, 1)).toFixed(1)},` +
          `${(top + tall * (1 - value)).toFixed(1)}`
      );
      line.setAttribute("points", points.join(" "));
    });
  }

  /* Where a widget says in words what it shows. */
  function result() {
    const told = document.createElement("output");
    told.setAttribute("aria-live", "polite");
    told.className = "widget-result";
    return told;
  }

  function panel(figure, ...parts) {
    const box = document.createElement("div");
    box.className = "widget-controls";
    box.append(...parts);
    figure.prepend(box);
  }

  /* --- A deep linear network of diagonal layers under gradient flow ------------- */

  function flow(data, depth, decay) {
    const modes = data.targets.length;
    let u = data.starts.slice(0, depth).map((row) => [...row]);
    const product = (w, mode, left = -1) =>
      w.reduce((value, row, l) => (l === left ? value : value * row[mode]), 1);
    const velocity = (w) =>
      w.map((row, l) =>
        row.map(
          (value, m) =>
            -(product(w, m) - data.targets[m]) * product(w, m, l) - decay * value
        )
      );
    const moved = (w, k, h) => w.map((row, l) => row.map((x, m) => x + h * k[l][m]));
    const measures = (w) => {
      let [ab, aa, bb, imbalance] = [0, 0, 0, 0];
      for (let m = 0; m < modes; m++) {
        const a = w[0][m] ** 2;
        const b = Math.abs(product(w, m)) ** (2 / depth);
        [ab, aa, bb] = [ab + a * b, aa + a * a, bb + b * b];
        for (let l = 1; l < depth; l++) imbalance += (w[l][m] ** 2 - w[l - 1][m] ** 2) ** 2;
      }
      return [ab / Math.sqrt(aa * bb), Math.sqrt(imbalance)];
    };
    const first = measures(u)[1];
    const [cosines, imbalances] = [[], []];
    const count = Math.round(data.time / data.step);
    for (let i = 0; i <= count; i++) {
      if (i % data.every === 0) {
        const [cosine, imbalance] = measures(u);
        cosines.push(cosine);
        imbalances.push(imbalance / first);
      }
      const k1 = velocity(u);
      const k2 = velocity(moved(u, k1, data.step / 2));
      const k3 = velocity(moved(u, k2, data.step / 2));
      const k4 = velocity(moved(u, k3, data.step));
      u = u.map((row, l) =>
        row.map(
          (x, m) =>
            x + (data.step / 6) * (k1[l][m] + 2 * k2[l][m] + 2 * k3[l][m] + k4[l][m])
        )
      );
    }
    return { cosines, imbalances };
  }

  function deepLinear(figure, drawing, data) {
    const told = result();
    const update = () => {
      const { cosines, imbalances } = flow(data, depth.value(), decay.value());
      redraw(drawing, [cosines, imbalances]);
      const end = cosines.length - 1;
      told.textContent =
        `cosine ${cosines[0].toFixed(4)} → ${cosines[end].toFixed(4)}; ` +
        `imbalance 1 → ${imbalances[end].toFixed(4)}`;
      drawing.setAttribute("aria-label", told.textContent);
    };
    const depth = slider(
      "Layers",
      { min: 2, max: data.starts.length, step: 1, value: data.depth, show: String },
      update
    );
    const decay = slider(
      "Weight decay",
      { min: 0, max: 0.3, step: 0.02, value: data.decay, show: (x) => x.toFixed(2) },
      update
    );
    panel(figure, depth.named, decay.named, told);
    update();
  }

  /* --- Steps of training --------------------------------------------------------- */

  /* White at zero, orange and purple on either side: told apart without red and green. */
  function colour(value) {
    const [r, g, b] = value > 0 ? [84, 39, 136] : [179, 88, 6];
    const share = Math.min(Math.abs(value), 1);
    const mix = (to) => Math.round(247 + (to - 247) * share);
    return `rgb(${mix(r)},${mix(g)},${mix(b)})`;
  }

  function matrixDrawing(rows) {
    const size = rows.length;
    const svg = element("svg", {
      viewBox: `0 0 ${size} ${size}`,
      class: "widget-matrix",
      role: "img",
    });
    rows.forEach((row, i) =>
      row.forEach((_, j) =>
        svg.append(element("rect", { x: j, y: i, width: 1.02, height: 1.02 }))
      )
    );
    return svg;
  }

  function scrub(figure, drawing, data) {
    const frames = data.frames;
    const svg = matrixDrawing(frames[0].matrix);
    const cursor = element("line", {
      y1: 30,
      y2: 180,
      stroke: "currentColor",
      "stroke-width": 1.5,
    });
    drawing.append(cursor);
    const told = result();
    const update = () => {
      const frame = frames[place.value()];
      const largest = Math.max(...frame.matrix.flat().map(Math.abs)) || 1;
      const cells = frame.matrix.flat();
      svg.querySelectorAll("rect").forEach((cell, i) =>
        cell.setAttribute("fill", colour(cells[i] / largest))
      );
      const x = 44 + (506 * place.value()) / Math.max(frames.length - 1, 1);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      const percent = (share) => `${(100 * share).toFixed(1)} %`;
      told.textContent =
        `${data.unit} ${frame.at}: training ${percent(frame.train)}, ` +
        `test ${percent(frame.test)}`;
      svg.setAttribute("aria-label", `Feature matrix at ${data.unit} ${frame.at}`);
    };
    const place = slider(
      data.title,
      {
        min: 0,
        max: frames.length - 1,
        step: 1,
        value: 0,
        show: (i) => `${data.unit} ${frames[i].at}`,
      },
      update
    );
    panel(figure, place.named, told, svg);
    update();
  }

  /* --- One experiment, many definitions ------------------------------------------ */

  function picker(label, values, changed) {
    const select = document.createElement("select");
    for (const value of values) select.add(new Option(value));
    select.addEventListener("change", changed);
    const named = document.createElement("label");
    named.append(`${label} `, select);
    return { named, value: () => select.value };
  }

  function choices(figure, drawing, data) {
    const told = result();
    const listed = (values) => values.map((v) => v.toFixed(2)).join(", ");
    const update = () => {
      const row = data.rows.find((each) =>
        Object.entries(pickers).every(([key, p]) => each.choice[key] === p.value())
      );
      const name = against.value();
      const clipped = (values) => values.map((v) => Math.min(1, Math.max(0, v)));
      redraw(drawing, [clipped(row.found), clipped(row[name])]);
      drawing.querySelectorAll("text").forEach((text) => {
        if (text.textContent.startsWith("null: ")) text.textContent = `null: ${name}`;
      });
      told.textContent =
        `layers 1 to ${row.found.length}: ${listed(row.found)}; ` +
        `${name}: ${listed(row[name])}`;
      drawing.setAttribute("aria-label", told.textContent);
    };
    const pickers = {};
    for (const key of Object.keys(data.rows[0].choice)) {
      const values = new Set(data.rows.map((row) => row.choice[key]));
      pickers[key] = picker(key, values, update);
    }
    const against = picker("null", data.nulls, update);
    panel(figure, ...Object.values(pickers).map((p) => p.named), against.named, told);
    update();
  }

  const KINDS = { "deep-linear": deepLinear, scrub, choices };

  function start() {
    for (const figure of document.querySelectorAll("figure.widget")) {
      const data = JSON.parse(figure.querySelector("script").textContent);
      KINDS[figure.dataset.widget](figure, figure.querySelector("svg.drawing"), data);
    }
  }

  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", start);
  } else {
    start();
  }
})();
