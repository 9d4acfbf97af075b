// What a row holds, view by view. All content is set as text, never as markup.

import { root } from "/connection.js";

const AXIS = 48; // pixels left of a waveform; --axis in page.css
const HEIGHTS = { sound: [170, 100, 64], series: [260, 170, 110], spectrogram: [200, 80, 44] }; // pixels for one, two and more signals
const TIME_HEIGHT = 24;
const signals = []; // of the row that is shown: plot, box, time axis
let nSignals = 1, player = null;

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
  return getComputedStyle(root.host ?? root.documentElement).getPropertyValue(name).trim();
}

function opinionList(classes, shares) {
  const order = shares.map((p, k) => [p, classes[k]]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  return order.map(([p, name]) =>
    element("span", { class: "opinion" },
      element("span", { text: name }),
      element("meter", { min: 0, max: 1, value: p, "aria-label": `probability of ${name}` }),
      element("span", { text: `${Math.round(100 * p)} %` })));
}

// Waveforms: one time axis for all sensors, at the last of them.

function drawWaveform(signal) {
  const { part, seconds, isLast, plotBox } = signal;
  const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  const time = isLast ? { ...axis, size: TIME_HEIGHT, values: (_, ticks) => ticks.map((t) => (t < 0.97 * seconds ? `${t} s` : "")) } : { ...axis, size: 0, values: () => [], ticks: { show: false } };
  signal.plot?.destroy();
  signal.plot = new uPlot({
    width: plotBox.clientWidth || 300, height: heightOf(part.kind) + (isLast ? TIME_HEIGHT : 0),
    cursor: { show: false }, legend: { show: false },
    scales: { x: { time: false, range: [0, seconds] } },
    axes: [time, { ...axis, size: AXIS, space: 20 }],
    padding: [6, 0, isLast ? 0 : 6, 0],
    series: [{}, { stroke: color("--accent"), width: 1, points: { show: false } }],
  }, [part.times, part.values], plotBox);
}

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const signal = signals.find((found) => found.plotBox === target);
    if (!signal || !target.clientWidth) continue;
    if (!signal.plot) drawWaveform(signal);
    else if (signal.plot.width !== target.clientWidth) signal.plot.setSize({ width: target.clientWidth, height: signal.plot.height });
  }
});

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => signals.forEach(drawWaveform));

function heightOf(kind) {
  return HEIGHTS[kind][Math.min(nSignals, 3) - 1];
}

function frequency(hertz) {
  return hertz >= 1000 ? `${Number((hertz / 1000).toPrecision(3))} kHz` : `${Math.round(hertz)} Hz`;
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

// Lines over all signals at one time: where the pointer is, and what is played.

function showLine(kind, time) {
  for (const { lines, box, seconds } of signals) {
    const line = lines[kind];
    line.hidden = time === null || time > seconds;
    if (!line.hidden) line.style.left = `${AXIS + (time / seconds) * (box.clientWidth - AXIS)}px`;
  }
}

function onPointer(event, signal) {
  const box = signal.box.getBoundingClientRect(), x = event.clientX - box.left - AXIS;
  showLine("cursor", x < 0 ? null : (x / (box.width - AXIS)) * signal.seconds);
}

function signalElement(part, view, seconds, isLast) {
  const name = `Waveform of ${view}, ${part.name}, ${part.seconds.toFixed(2)} seconds`;
  const plotBox = element("div", { role: "img", "aria-label": name });
  const lines = { cursor: element("div", { class: "line cursor", hidden: "" }), playing: element("div", { class: "line playing", hidden: "" }) };
  const box = element("div", { class: "signal" });
  if (part.spectrogram) {
    const label = `Spectrogram of ${view}, ${part.name}, up to ${Math.round(part.spectrogram.highest)} Hz`;
    const canvas = element("canvas", { class: "spectrogram", role: "img", "aria-label": label });
    drawSpectrogram(canvas, part.spectrogram, part.seconds / seconds);
    canvas.style.height = `${heightOf("spectrogram")}px`;
    box.append(canvas, element("span", { class: "axis-text top", text: frequency(part.spectrogram.highest), "aria-hidden": "true" }));
  }
  const unit = part.unit || (part.kind === "sound" ? "ampl." : "");
  box.append(element("div", { class: "wave" }, plotBox, element("span", { class: "axis-text unit", text: unit })), lines.cursor, lines.playing);
  const signal = { part, seconds, isLast, plotBox, box, lines, plot: null };
  signals.push(signal);
  resized.observe(plotBox);
  box.addEventListener("pointermove", (event) => onPointer(event, signal));
  box.addEventListener("pointerleave", () => showLine("cursor", null));
  return box;
}

function partElement(part, panel, seconds, isLast) {
  if (part.kind === "text") return element("p", { class: "text", text: part.text + (part.cut ? " … (cut)" : "") });
  if (part.kind === "table") {
    const withNumbers = part.cells.some((cell) => cell.z !== undefined);
    const more = (cell) => withNumbers ? [cell.z == null ? "" : `${cell.z >= 0 ? "+" : "−"}${Math.abs(cell.z).toFixed(1)} sd`, ...part.classes.map((_, k) => cell.medians?.[k] ?? "")] : [];
    const rows = part.cells.map((cell) =>
      element("tr", {}, element("th", { scope: "row", text: cell.name }), element("td", { text: cell.value }), ...more(cell).map((text) => element("td", { class: "soft", text }))));
    const table = element("table", {}, element("tbody", {}, ...rows));
    if (withNumbers) {
      const titles = ["column", "value", "from the mean", ...part.classes.map((name) => `median ${name}`)];
      table.prepend(element("thead", {}, element("tr", {}, ...titles.map((text) => element("th", { scope: "col", text })))));
    }
    const box = element("div", { class: withNumbers ? "cells numbers" : "cells" }, table);
    if (part.n_more) box.append(element("p", { class: "soft", text: `${part.n_more} more columns` }));
    return box;
  }
  const drawn = signalElement(part, panel.view, seconds, isLast);
  if (panel.parts.length === 1) return drawn;
  return element("div", {}, element("p", { class: "soft signal-name", text: part.name }), drawn);
}

export function showPanels(target, row, opinionsShown, play) {
  stopSound();
  resized.disconnect();
  for (const { plot } of signals.splice(0)) plot?.destroy();
  const waves = row.panels.flatMap((panel) => panel.parts.filter((part) => part.seconds !== undefined));
  nSignals = Math.max(waves.length, 1);
  const seconds = Math.max(...waves.map((part) => part.seconds), 1e-9);
  target.replaceChildren(...row.panels.map((panel) => panelElement(panel, row, opinionsShown, play, seconds, waves.at(-1))));
}

function panelElement(panel, row, opinionsShown, play, seconds, last) {
  const head = element("div", { class: "panel-head" }, element("h3", { text: panel.view }));
  const sounds = panel.parts.filter((part) => part.kind === "sound");
  for (const part of sounds) {
    const name = sounds.length > 1 ? `${panel.view}, ${part.name}` : panel.view;
    head.append(element("button", { type: "button", class: "play", text: "Play", "aria-label": `Play the sound of ${name}`, "data-column": part.name, onclick: () => play(part.name) }));
  }
  const shares = row.opinions?.views[panel.view];
  if (shares && panel.parts.length && opinionsShown) {
    head.append(element("div", { role: "group", "aria-label": `Opinion of ${panel.view}` }, ...opinionList(row.opinions.classes, shares)));
  }
  const parts = panel.parts.map((part) => partElement(part, panel, seconds, part === last));
  return element("section", { class: "panel", "aria-label": panel.view }, head,
    ...(parts.length ? parts : [element("p", { class: "soft", text: "Missing in this row." })]));
}

// Who, when and where: links open in a window of their own, pictures are files beside the data.
export function showContext(target, row, load) {
  for (const picture of target.querySelectorAll("img")) URL.revokeObjectURL(picture.src);
  target.hidden = !row.context.length;
  target.replaceChildren(...row.context.map((cell) => {
    const shown = element("dd", { text: cell.kind === "text" ? cell.text : "" });
    if (cell.kind === "link") shown.append(element("a", { href: cell.text, target: "_blank", rel: "noopener noreferrer", text: cell.text }));
    if (cell.kind === "picture") load(cell.name).then((blob) => shown.append(element("img", { src: URL.createObjectURL(blob), alt: `${cell.name}: ${cell.text}` })), () => { shown.textContent = cell.text; });
    return element("div", { class: cell.kind }, element("dt", { text: cell.name }), shown);
  }));
}

export function showConsensus(target, row, opinionsShown) {
  target.replaceChildren();
  if (row.opinions?.consensus && opinionsShown) {
    target.append(element("strong", { text: row.panels.length > 1 ? "All sensors together" : "The model" }), ...opinionList(row.opinions.classes, row.opinions.consensus));
  }
}

// Sound

export async function playSound(column, load) {
  const wasPlaying = player?.column;
  stopSound();
  if (wasPlaying === column) return;
  const address = URL.createObjectURL(await load());
  const audio = new Audio(address);
  const mine = player = { column, audio, address };
  showButtons();
  const move = () => {
    if (player !== mine) return;
    showLine("playing", audio.currentTime);
    requestAnimationFrame(move);
  };
  audio.addEventListener("ended", () => { if (player === mine) stopSound(); });
  try { await audio.play(); move(); } catch (error) {
    if (player === mine) stopSound();
    if (error.name !== "AbortError") throw new Error("The browser cannot play this sound.");
  }
}

export function stopSound() {
  if (!player) return;
  player.audio.pause();
  URL.revokeObjectURL(player.address);
  player = null;
  showLine("playing", null);
  showButtons();
}

function showButtons() {
  for (const button of root.querySelectorAll("button.play")) {
    button.textContent = player?.column === button.dataset.column ? "Stop" : "Play";
  }
}
