// One plot drawn by uPlot: lines, bands from lowest to highest, shaded gaps, resets, the limit.

const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [4, 6]];
const HEIGHT = 232;


// A variable with light-dark() has its colour only on an element that uses it.
function colour(element, name) {
  element.style.color = `var(${name})`;
  const found = getComputedStyle(element).color;
  element.style.color = "";
  return found;
}

function columns(plot) {
  const cells = (list) => list.map((cell) => (cell === "" ? undefined : cell));
  const lines = plot.lines.flatMap((line) => [cells(line.value), cells(line.high), cells(line.low)]);
  return [plot.at.map((ms) => ms / 1000), ...lines];
}

function seriesOf(plot, ink) {
  const drawn = plot.lines.flatMap((line, number) => [
    {
      label: line.name,
      stroke: ink.lines[number],
      width: 1.5,
      dash: DASHES[number],
      paths: line.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
      points: { show: true, filter: lonePoints, size: 4, fill: ink.lines[number] },
    },
    { stroke: "transparent", points: { show: false } },
    { stroke: "transparent", points: { show: false } },
  ]);
  return [{}, ...drawn];
}

// Only a point without neighbours is a dot; others are parts of a line.
function lonePoints(u, number) {
  const cells = u.data[number];
  const known = (at) => cells[at] !== null && cells[at] !== undefined;
  return cells.flatMap((_, at) => (known(at) && !known(at - 1) && !known(at + 1) ? [at] : []));
}

function bandsOf(plot, ink) {
  return plot.lines.map((_, number) => ({ series: [3 * number + 2, 3 * number + 3], fill: ink.bands[number] }));
}

function shadeGaps(plot, ink) {
  return (u) => {
    u.ctx.save();
    u.ctx.fillStyle = ink.gap;
    for (const [start, end] of plot.gaps) {
      const left = Math.max(u.bbox.left, u.valToPos(start / 1000, "x", true));
      const right = Math.min(u.bbox.left + u.bbox.width, u.valToPos(end / 1000, "x", true));
      if (right > left) u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
    }
    u.ctx.restore();
  };
}

function drawMarks(plot, ink) {
  return (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.setLineDash([3, 3]);
    for (const [at, kind] of plot.marks) {
      const x = u.valToPos(at / 1000, "x", true);
      strokeLine(ctx, kind === "reset" ? ink.late : ink.failing, x, bbox.top, x, bbox.top + bbox.height);
    }
    if (plot.limit !== null && plot.limit <= plot.top) {
      const y = u.valToPos(plot.limit, "y", true);
      ctx.setLineDash([8, 4]);
      strokeLine(ctx, ink.muted, bbox.left, y, bbox.left + bbox.width, y);
    }
    ctx.restore();
  };
}

function strokeLine(ctx, style, x1, y1, x2, y2) {
  ctx.strokeStyle = style;
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}

function inkOf(element) {
  const lines = [1, 2, 3, 4, 5, 6].map((number) => colour(element, `--line-${number}`));
  const faint = (text, share) => text.replace(/^rgb\((.*)\)$/, `rgba($1, ${share})`);
  return {
    lines,
    bands: lines.map((text) => faint(text, 0.18)),
    gap: faint(colour(element, "--unknown"), 0.14),
    grid: faint(colour(element, "--border"), 0.4),
    muted: colour(element, "--muted"),
    late: colour(element, "--late"),
    failing: colour(element, "--failing"),
  };
}

function axesOf(plot, ink) {
  const font = "12px system-ui, sans-serif";
  const common = { stroke: ink.muted, font, grid: { stroke: ink.grid, width: 1 }, ticks: { show: false } };
  return [
    { ...common, space: 90, size: 32, values: (u, at) => at.map((s) => instantText(s * 1000, plot.end - plot.start)) },
    { ...common, size: 84, values: (u, at) => axisTexts(plot, at) },
  ];
}

function drawPlot(element, plot, hooks) {
  const ink = inkOf(element);
  const options = {
    width: element.clientWidth,
    height: HEIGHT,
    tzDate: (s) => uPlot.tzDate(new Date(s * 1000), "UTC"),
    scales: {
      x: { time: true, min: plot.start / 1000, max: plot.end / 1000, range: (u, min, max) => [min, max] },
      y: { range: [plot.bottom, plot.top] },
    },
    series: seriesOf(plot, ink),
    bands: bandsOf(plot, ink),
    axes: axesOf(plot, ink),
    legend: { show: false },
    cursor: {
      sync: { key: "plots" },
      drag: { x: true, y: false, setScale: false },
      points: { show: (u, number) => number % 3 === 1 && undefined },
      bind: { dblclick: () => () => null },
    },
    hooks: { drawClear: [shadeGaps(plot, ink)], draw: [drawMarks(plot, ink)], ...hooks },
  };
  return new uPlot(options, columns(plot), element);
}
