// Charts over time: hover to read, drag to zoom (all charts of the page together), deploy marks as dashed verticals.
// Without this file the page shows the same figures as a still picture.
(() => {
  "use strict";
  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  const colour = (name, alpha = 1) => {
    probe.style.color = `var(--${name})`;
    const found = getComputedStyle(probe).color;
    if (alpha === 1) return found;
    return found.replace(/^rgb\(([^)]*)\)$/, (_, parts) => `rgba(${parts}, ${alpha})`);
  };

  const charts = new Map();
  let zoom = null;

  const whole = (n) => (n >= 10000 ? `${(n / 1000).toFixed(n >= 100000 ? 0 : 1)}k` : String(Math.round(n)));
  const span = (s) => {
    if (s === 0) return "0";
    if (s < 1) return `${Math.round(s * 1000)} ms`;
    if (s < 60) return `${s < 10 ? +s.toFixed(1) : Math.round(s)} s`;
    if (s < 3600) return `${+(s / 60).toFixed(1)} m`;
    return `${+(s / 3600).toFixed(1)} h`;
  };
  // Steps of the axis that read well: whole numbers, and 15 s, 30 s, 1 m rather than 25 s, 50 s, 1.7 m.
  const counted = [1, 2, 5, 10, 20, 25, 50, ...[2, 3, 4, 5, 6, 7, 8].flatMap((n) => [1, 2, 2.5, 5].map((m) => m * 10 ** n))];
  const timed = [
    ...[-3, -2, -1].flatMap((n) => [1, 2, 2.5, 5].map((m) => m * 10 ** n)),
    1, 2, 2.5, 5, 10, 15, 30, ...[1, 2, 5, 10, 15, 30].map((m) => m * 60), ...[1, 2, 3, 6, 12, 24, 48, 96, 240].map((h) => h * 3600),
  ];
  const reading = (unit, value) => (value == null ? "none" : unit === "s" ? span(value) : value.toLocaleString());

  const marksOf = (spec) => ({
    hooks: {
      draw: (u) => {
        const context = u.ctx;
        context.save();
        context.strokeStyle = colour("ink-3");
        context.font = `${11 * devicePixelRatio}px Geist, sans-serif`;
        context.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
        context.lineWidth = devicePixelRatio;
        context.textAlign = "left";
        context.textBaseline = "alphabetic";
        const shown = spec.marks
          .filter((mark) => mark.at >= u.scales.x.min && mark.at <= u.scales.x.max)
          .map((mark) => ({ label: mark.label, x: Math.round(u.valToPos(mark.at, "x", true)) + 0.5 }));
        for (const { x } of shown) {
          context.beginPath();
          context.moveTo(x, u.bbox.top);
          context.lineTo(x, u.bbox.top + u.bbox.height);
          context.stroke();
        }
        const gap = 4 * devicePixelRatio;
        let free = -Infinity;
        for (const { label: whole, x } of shown) {
          const label = whole.length > 16 ? `${whole.slice(0, 15)}…` : whole;
          const width = context.measureText(label).width;
          const left = x + gap + width > u.bbox.left + u.bbox.width;
          const from = left ? x - width - gap : x + gap;
          if (from <= free) continue;
          // The line of the next mark must not run through the label.
          context.fillStyle = colour("card");
          context.fillRect(from - 1, u.bbox.top, width + 2, 15 * devicePixelRatio);
          context.fillStyle = colour("ink-2");
          context.fillText(label, from, u.bbox.top + 11 * devicePixelRatio);
          free = from + width + gap;
        }
        context.restore();
      },
    },
  });

  const readout = (chart, spec, index) => {
    const box = chart.querySelector(".readout");
    const parts = spec.lines.map((line) => {
      const key = document.createElement("span");
      const swatch = document.createElement("span");
      const value = document.createElement("b");
      key.className = `key ${line.tone}`;
      swatch.className = `swatch${line.dash ? " dash" : ""}`;
      key.append(swatch, `${line.label} `);
      if (index != null) {
        value.textContent = reading(spec.unit, spec.columns[line.column][index]);
        key.append(value);
      }
      return key;
    });
    if (index != null) {
      const when = document.createElement("span");
      const at = spec.at[index] * 1000;
      when.className = "when num";
      const long = spec.at[spec.at.length - 1] - spec.at[0] > 86400;
      const near = spec.marks.filter((mark) => Math.abs(mark.at - spec.at[index]) <= (spec.at[1] - spec.at[0] || 60) / 2).map((mark) => mark.label);
      when.textContent = (near.length ? `${near.join(", ")} · ` : "") + (long ? `${groupmq.day.format(at)} ` : "") + groupmq.clock.format(at).slice(0, 5);
      parts.push(when);
    }
    box.replaceChildren(...parts);
  };

  const options = (chart, spec, width) => ({
    width,
    height: 190,
    legend: { show: false },
    padding: [8, 18, 0, 0],
    cursor: {
      y: false,
      points: { size: 7, width: 2 },
      drag: { x: true, y: false, uni: 10 },
      sync: { key: "groupmq", setSeries: false },
    },
    scales: { x: { time: true }, y: { range: (u, low, high) => [0, high > 0 ? high * 1.12 : 1] } },
    axes: [
      {
        stroke: colour("ink-3"), grid: { show: false }, ticks: { stroke: colour("line"), size: 4, width: 1 }, font: "11px Geist, sans-serif", size: 28, gap: 5, space: 64,
        values: (u, splits) => {
          const long = u.scales.x.max - u.scales.x.min > 2 * 86400;
          return splits.map((s) => (long ? groupmq.day.format(s * 1000) : groupmq.clock.format(s * 1000).slice(0, 5)));
        },
      },
      {
        stroke: colour("ink-3"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "11px Geist, sans-serif", size: 52, gap: 6, space: 38, incrs: spec.unit === "s" ? timed : counted,
        values: (u, splits) => splits.map((v) => (spec.unit === "s" ? span(v) : Number.isInteger(v) ? whole(v) : "")),
      },
    ],
    series: [
      {},
      ...spec.lines.map((line) => ({
        stroke: colour(line.tone),
        width: 1.5,
        dash: line.dash ? [4, 3] : undefined,
        fill: line.area ? colour(line.tone, 0.1) : undefined,
        spanGaps: false,
        points: { show: (u, i) => { const d = u.data[i]; return d.filter((v) => v != null).length < 4; }, size: 5, fill: colour(line.tone) },
      })),
      ...(unfinished(spec) ? spec.lines : []).map((line) => ({ stroke: colour(line.tone), width: 1.5, dash: [1, 3], spanGaps: false, points: { show: false } })),
    ],
    hooks: {
      setCursor: [(u) => readout(chart, spec, u.cursor.idx)],
      setSelect: [(u) => {
        if (u.select.width < 4) return;
        zoomTo([u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")]);
      }],
      ready: [(u) => u.over.addEventListener("dblclick", () => zoomTo(null))],
    },
    plugins: [marksOf(spec)],
  });

  const zoomTo = (range) => {
    zoom = range;
    for (const { plot, spec } of charts.values()) apply(plot, spec);
  };
  const apply = (plot, spec) => {
    // A mark of the span under way lies after the point at which that span begins.
    const last = spec.at[spec.at.length - 1];
    const [low, high] = zoom || [spec.at[0], Math.max(last, ...spec.marks.map((mark) => mark.at))];
    plot.setScale("x", { min: low, max: high });
  };
  // The span under way is still being counted, so in charts of counts the stretch that leads to it is drawn as unfinished.
  const unfinished = (spec) => spec.unit !== "s";
  const ended = (values) => values.map((v, i) => (i === values.length - 1 ? null : v));
  const rest = (values) => values.map((v, i) => (i < values.length - 2 ? null : v));
  const data = (spec) => {
    const columns = spec.lines.map((line) => spec.columns[line.column]);
    return unfinished(spec) ? [spec.at, ...columns.map(ended), ...columns.map(rest)] : [spec.at, ...columns];
  };

  const draw = (chart) => {
    let spec;
    try {
      spec = JSON.parse(chart.dataset.chart);
    } catch {
      return;
    }
    const box = chart.querySelector(".plot");
    const known = charts.get(chart.id);
    if (spec.at.length < 2) return;
    if (known && known.box === box && box.contains(known.plot.root)) {
      if (known.text === chart.dataset.chart) return;
      known.text = chart.dataset.chart;
      Object.assign(known.spec, spec);
      known.plot.setData(data(known.spec), false);
      apply(known.plot, known.spec);
      return;
    }
    box.replaceChildren();
    const plot = new uPlot(options(chart, spec, box.clientWidth), data(spec), box);
    charts.set(chart.id, { plot, spec, box, text: chart.dataset.chart });
    apply(plot, spec);
  };
  const drawAll = () => document.querySelectorAll("[data-chart]").forEach(draw);
  const again = () => {
    for (const { plot } of charts.values()) plot.destroy();
    charts.clear();
    drawAll();
  };

  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const { plot, box } of charts.values()) plot.setSize({ width: box.clientWidth, height: 190 });
  });
  document.addEventListener("groupmq:theme", again);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  document.addEventListener("groupmq:swapped", drawAll);
  (document.fonts?.ready || Promise.resolve()).then(drawAll);
})();
