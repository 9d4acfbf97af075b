// What a row holds, view by view. All content is set as text, never as markup.

const AXIS = 48; // pixels left of a waveform; as the margin of .spectrogram in page.css
const plots = [];
let player = null;

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") made.textContent = value;
    else if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function opinionList(classes, shares) {
  const order = shares.map((p, k) => [p, classes[k]]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  return order.map(([p, name]) =>
    element("span", { class: "opinion" },
      element("span", { text: name }),
      element("meter", { min: 0, max: 1, value: p, "aria-label": `probability of ${name}` }),
      element("span", { text: `${Math.round(100 * p)} %` })));
}

function drawSeries(box, part, seconds) {
  const data = [part.times, part.values];
  const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  const plot = new window.uPlot({
    width: box.clientWidth || 600, height: part.kind === "sound" ? 96 : 120,
    cursor: { sync: { key: "row" }, y: false, drag: { x: true, y: false } },
    scales: { x: { time: false, range: [0, seconds] } },
    axes: [{ ...axis, size: 24, values: (_, ticks) => ticks.map((t) => `${t} s`) }, { ...axis, size: AXIS }],
    padding: [4, 0, 0, 0],
    series: [{}, { stroke: color("--accent"), width: 1 }],
    legend: { show: false },
  }, data, box);
  plots.push({ plot, box, kind: part.kind });
}

function drawSpectrogram(canvas, image, share) {
  const bytes = Uint8Array.from(atob(image.data), (c) => c.charCodeAt(0));
  const small = document.createElement("canvas");
  small.width = image.frames; small.height = image.bands;
  const pixels = small.getContext("2d").createImageData(image.frames, image.bands);
  for (let b = 0; b < image.bands; b++) {
    for (let t = 0; t < image.frames; t++) {
      const v = bytes[b * image.frames + t], at = 4 * ((image.bands - 1 - b) * image.frames + t);
      pixels.data[at] = v; pixels.data[at + 1] = v * v / 255; pixels.data[at + 2] = 90 + v / 3; pixels.data[at + 3] = 255;
    }
  }
  small.getContext("2d").putImageData(pixels, 0, 0);
  canvas.width = 1200; canvas.height = 180;
  canvas.getContext("2d").drawImage(small, 0, 0, Math.round(1200 * share), 180);
}

function partElement(part, view, seconds, play) {
  if (part.kind === "text") {
    return element("p", { class: "text", text: part.text + (part.cut ? " … (cut)" : "") });
  }
  if (part.kind === "table") {
    const rows = part.cells.map(([name, value]) =>
      element("tr", {}, element("th", { scope: "row", text: name }), element("td", { text: value })));
    const table = element("table", {}, element("tbody", {}, ...rows));
    const box = element("div", { class: "cells" }, table);
    if (part.n_more) box.append(element("p", { class: "soft", text: `${part.n_more} more columns` }));
    return box;
  }
  const box = element("div", { role: "img", "aria-label": `Waveform of ${view}, ${part.name}, ${part.seconds.toFixed(2)} seconds` });
  const whole = element("div", {}, box);
  queueMicrotask(() => drawSeries(box, part, seconds));
  if (part.spectrogram) {
    const canvas = element("canvas", { class: "spectrogram", role: "img", "aria-label": `Spectrogram of ${view}, up to ${Math.round(part.spectrogram.highest)} Hz` });
    drawSpectrogram(canvas, part.spectrogram, part.seconds / seconds);
    whole.append(canvas);
  }
  return whole;
}

export function showPanels(target, row, opinionsShown, play) {
  stopSound();
  for (const { plot } of plots.splice(0)) plot.destroy();
  const lengths = row.panels.flatMap((panel) => panel.parts.map((part) => part.seconds || 0));
  const seconds = Math.max(...lengths, 1e-9);
  target.replaceChildren(...row.panels.map((panel) => {
    const head = element("header", {}, element("h3", { text: panel.view }));
    for (const part of panel.parts.filter((found) => found.kind === "sound")) {
      head.append(element("button", { type: "button", class: "play", text: "Play", "aria-label": `Play the sound of ${panel.view}`, "data-column": part.name, onclick: () => play(part.name) }));
    }
    const shares = row.opinions?.views[panel.view];
    if (shares && panel.parts.length && opinionsShown) {
      head.append(element("div", { "aria-label": `Opinion of ${panel.view}` }, ...opinionList(row.opinions.classes, shares)));
    }
    const parts = panel.parts.map((part) => partElement(part, panel.view, seconds, play));
    return element("section", { class: "panel", "aria-label": panel.view }, head,
      ...(parts.length ? parts : [element("p", { class: "soft", text: "This sensor is missing here." })]));
  }));
}

export function showConsensus(target, row, opinionsShown) {
  target.replaceChildren();
  if (row.opinions && opinionsShown) {
    target.append(element("strong", { text: "All sensors together: " }), ...opinionList(row.opinions.classes, row.opinions.consensus));
  }
}

export async function playSound(load) {
  if (player) { stopSound(); return; }
  const address = URL.createObjectURL(await load());
  player = new Audio(address);
  const mine = player;
  const move = () => {
    if (player !== mine) return;
    for (const { plot } of plots) plot.setCursor({ left: plot.valToPos(mine.currentTime, "x"), top: 10 }, false);
    requestAnimationFrame(move);
  };
  mine.addEventListener("ended", () => stopSound());
  try { await mine.play(); move(); } catch { stopSound(); }
}

export function stopSound() {
  if (!player) return;
  player.pause();
  URL.revokeObjectURL(player.src);
  player = null;
}

window.addEventListener("resize", () => {
  for (const { plot, box } of plots) plot.setSize({ width: box.clientWidth || 300, height: plot.height });
});
