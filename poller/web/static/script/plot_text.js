// Numbers and instants of plots as the server writes them: three digits, one unit, UTC.

const SI = ["", "k", "M", "G", "T"];
const IEC = ["B", "KiB", "MiB", "GiB", "TiB"];
const DAY_MS = 86_400_000;

function significant(number) {
  if (number === 0) return "0";
  const decimals = Math.max(0, Math.min(2, 2 - Math.floor(Math.log10(Math.abs(number)))));
  const text = number.toFixed(decimals);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function scaled(number, step, units) {
  let power = 0;
  while (Math.abs(number) >= step * 0.9995 && power < units.length - 1) {
    number /= step;
    power += 1;
  }
  return [significant(number), units[power]];
}

function plainNumber(number) {
  if (Number.isInteger(number) || Math.abs(number) >= 1000) return Math.round(number).toLocaleString("en-US");
  return Math.abs(number) >= 0.1 ? significant(number) : String(Number(number.toPrecision(3)));
}

function secondsText(number) {
  if (number && Math.abs(number) < 0.001) return `${significant(number * 1e6)} µs`;
  if (Math.abs(number) < 0.9995) return `${significant(number * 1e3)} ms`;
  if (Math.abs(number) < 59.95) return `${significant(number)} s`;
  const whole = Math.round(number);
  const parts = [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]];
  const [one, name, other, rest] = parts.find(([unit]) => Math.abs(whole) >= unit);
  return `${Math.trunc(whole / one)} ${name} ${Math.trunc(Math.abs(whole % one) / other)} ${rest}`;
}

// The texts of an axis. Numbers that are close together have as many digits as tell them apart.
function axisTexts(plot, numbers) {
  const texts = numbers.map((number) => valueText(plot, number));
  if (plot.axis || new Set(texts).size === texts.length) return texts;
  return numbers.map((number) => number.toLocaleString("en-US", { maximumSignificantDigits: 12 }));
}

function valueText(plot, number) {
  if (number === null || number === undefined || number === "") return "–";
  if (plot.axis === "/s" && Math.abs(number) < 0.1) return `${plainNumber(number)} /s`;
  if (plot.axis === "bit/s" || plot.axis === "/s") {
    const [text, unit] = scaled(number, 1000, SI);
    return plot.axis === "/s" && unit ? `${text} ${unit}/s` : `${text} ${unit}${plot.axis}`;
  }
  if (plot.axis === "%") return `${significant(number)} %`;
  if (plot.axis === "s") return secondsText(number);
  if (plot.axis === "B") return scaled(number, 1024, IEC).join(" ");
  return `${plainNumber(number)} ${plot.suffix}`.trimEnd();
}

function instantText(ms, lengthMs) {
  const text = new Date(ms).toISOString();
  if (lengthMs <= DAY_MS) return text.slice(11, 16);
  return lengthMs <= 10 * DAY_MS ? `${text.slice(5, 10)} ${text.slice(11, 16)}` : text.slice(0, 10);
}
