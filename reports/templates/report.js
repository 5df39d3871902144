"use strict";
// Shared by the overview (a matrix of cells) and the operator pages (a table of cases). Reads the page's own data only.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const text = (value) => String(value).replace(/[&<>"']/g, (c) => escapes[c]);
const words = (name) => text(name.replaceAll("_", " "));
const count = (n) => n.toLocaleString("en-US");
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || one + "s"}`;

function startTheme() {
  const root = document.documentElement;
  let stored = null;
  try { stored = localStorage.getItem("opatlas-theme"); } catch { /* a page opened from a file may have no storage */ }
  const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = stored || preferred;
  $("theme").addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("opatlas-theme", root.dataset.theme); } catch { /* as above */ }
  });
}

function fillSelect(id, values, label = words) {
  const select = $(id);
  select.insertAdjacentHTML("beforeend", values.map((v) => `<option value="${text(v)}">${label(v)}</option>`).join(""));
  if (values.length < 2 && select.dataset.single === "hide") select.parentElement.hidden = true;
}

function badge(state) {
  return `<span class="badge s-${state}"><span aria-hidden="true">${data.glyphs[state] || ""}</span> ${words(state)}</span>`;
}

function onFilters(ids, redraw) {
  let timer = 0;
  for (const id of ids) {
    $(id).addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(redraw, 60); });
  }
}

// --- overview ---------------------------------------------------------------------------------------------------

function startMatrix() {
  fillSelect("framework", data.frameworks);
  fillSelect("configuration", data.configurations, text);
  fillSelect("suite", data.suites);
  fillSelect("outcome", data.outcomes);
  fillSelect("placement", data.placements.filter(Boolean));
  fillSelect("dtype", data.dtypes.filter(Boolean), text);
  onFilters(["search", "framework", "configuration", "suite", "outcome", "placement", "dtype", "shows", "newest", "tried"], drawMatrix);
  drawMatrix();
}

function matches(entry, want) {
  return want.every(([position, value]) => entry[position] === value);
}

function wanted() {
  const axes = [["configuration", data.configurations], ["suite", data.suites], ["outcome", data.outcomes], ["placement", data.placements]];
  return axes.flatMap(([id, names], position) => ($(id).value ? [[position, names.indexOf($(id).value)]] : []));
}

function stateOf(entries, shows) {
  const names = shows === "placement" ? data.placements : data.outcomes;
  const order = shows === "placement" ? data.placementOrder : data.stateOrder;
  const position = shows === "placement" ? 3 : 2;
  let worst = null;
  for (const entry of entries) {
    const rank = order.indexOf(names[entry[position]] || "unreached");
    if (worst === null || rank < worst) worst = rank;
  }
  return worst === null ? null : order[worst];
}

function cellHtml(row, cell, want, shows, totals) {
  const [dtype, entries] = cell;
  const name = `${row.operator}-${row.version} ${data.dtypes[dtype]}`;
  if (!entries) {
    if (want.length) return "<td></td>";
    totals.unreached += 1;
    return `<td><span class="cell s-unreached" role="img" title="${text(name)}: no case" aria-label="${text(name)}: unreached">${data.glyphs.unreached}</span></td>`;
  }
  const found = entries.filter((entry) => matches(entry, want));
  if (!found.length) return "<td></td>";
  const counts = {};
  let cases = 0;
  for (const entry of found) {
    const key = data.outcomes[entry[2]];
    counts[key] = (counts[key] || 0) + entry[4];
    cases += entry[4];
    if (key === "passed" && data.placements[entry[3]] === "accelerator") totals.accelerated += entry[4];
    if (key === "passed") totals.passed += entry[4];
  }
  totals.cases += cases;
  totals.cells += 1;
  totals.operators.add(row.framework + row.domain + row.operator);
  const state = stateOf(found, shows);
  const detail = Object.entries(counts).map(([key, n]) => `${count(n)} ${key.replaceAll("_", " ")}`).join(", ");
  const label = text(`${name}: ${state.replaceAll("_", " ")} (${detail})`);
  return `<td><a class="cell s-${state}" href="${row.page}#v${row.version}.${encodeURIComponent(data.dtypes[dtype])}" title="${label}" aria-label="${label}">${data.glyphs[state]}</a></td>`;
}

function drawMatrix() {
  const want = wanted();
  const shows = $("shows").value;
  const search = $("search").value.trim().toLowerCase();
  const framework = $("framework").value;
  const only = $("dtype").value ? data.dtypes.indexOf($("dtype").value) : null;
  const columns = data.dtypes.map((_, index) => index).filter((index) => only === null || index === only);
  const totals = { cases: 0, passed: 0, accelerated: 0, cells: 0, unreached: 0, operators: new Set() };
  const lines = [];
  for (const row of data.rows) {
    if ($("newest").checked && !row.newest) continue;
    if (search && !row.operator.toLowerCase().includes(search)) continue;
    if (framework && row.framework !== framework) continue;
    if ($("tried").checked && !row.cells.some((cell) => cell[1])) continue;
    const cells = new Map(row.cells.map((cell) => [cell[0], cell]));
    const html = columns.map((index) => (cells.has(index) ? cellHtml(row, cells.get(index), want, shows, totals) : "<td></td>"));
    if (html.every((part) => part === "<td></td>")) continue;
    const name = row.page ? `<a href="${row.page}">${text(row.operator)}</a>` : text(row.operator);
    const domain = row.domain ? `<span class="note">${text(row.domain)}.</span>` : "";
    lines.push(`<tr class="${row.newest ? "" : "older"}"><th scope="row">${domain}${name} <span class="note">${row.version || ""}</span></th>${html.join("")}</tr>`);
  }
  const head = columns.map((index) => `<th scope="col" class="type">${text(data.dtypes[index] || "no tensor")}</th>`).join("");
  $("matrix").innerHTML = `<thead><tr><th scope="col">operator and version</th>${head}</tr></thead><tbody>${lines.join("")}</tbody>`;
  $("totals").textContent = `${plural(totals.cases, "case")} in ${plural(totals.cells, "cell")} of ${plural(totals.operators.size, "operator")}: ` +
    `${count(totals.passed)} passed, ${count(totals.accelerated)} of them on the accelerator; ${plural(totals.unreached, "cell")} that no case reached.`;
}

// --- operator page ----------------------------------------------------------------------------------------------

const columnsOfCases = [
  ["outcome", "outcome", (c) => data.stateOrder.indexOf(c.outcome)],
  ["case_id", "case", (c) => c.case_id],
  ["since_version", "version", (c) => c.since_version, "n"],
  ["dtype", "type", (c) => data.dtypes.indexOf(c.dtype)],
  ["stage", "stage", (c) => data.stages.indexOf(c.stage)],
  ["placement", "placement", (c) => c.placement || ""],
  ["max_ulp", "max ulp", (c) => number(c.errors && c.errors.max_ulp), "n"],
  ["max_abs", "max abs", (c) => number(c.errors && c.errors.max_abs), "n"],
  ["cycles", "cycles", (c) => number(c.cycles), "n"],
  ["traffic_bytes", "bytes", (c) => number(c.traffic_bytes), "n"],
  ["energy_pj", "energy (pJ)", (c) => number(c.energy_pj), "n"],
  ["reason", "why", (c) => c.reason || ""],
];
const PAGE = 400;
const caseFilters = ["search", "configuration", "suite", "version", "dtype", "outcome", "placement"];
let sorting = ["outcome", 1];
let shown = PAGE;
let open = new Set();

function number(value) {
  return value === null || value === undefined ? null : Number(value);
}

function figure(value) {
  if (value === null || value === undefined) return "";
  const n = Number(value);
  if (!Number.isFinite(n)) return text(value);
  if (Number.isInteger(n) && Math.abs(n) < 1e15) return count(n);
  return n !== 0 && (Math.abs(n) < 1e-3 || Math.abs(n) >= 1e7) ? n.toExponential(2) : n.toLocaleString("en-US", { maximumSignificantDigits: 4 });
}

function startCases() {
  fillSelect("configuration", data.configurations, text);
  fillSelect("suite", data.suites);
  fillSelect("version", data.versions.map(String), text);
  fillSelect("dtype", data.dtypes.filter(Boolean), text);
  fillSelect("outcome", data.outcomes);
  fillSelect("placement", data.placements.filter(Boolean));
  onFilters(caseFilters, () => { shown = PAGE; drawCases(); });
  $("cases").addEventListener("click", onCaseClick);
  $("more").addEventListener("click", () => { shown += PAGE; drawCases(); });
  addEventListener("hashchange", readHash);
  readHash();
}

function readHash() {
  const hash = decodeURIComponent(location.hash.slice(1));
  const cell = hash.match(/^v(\d+)\.(.*)$/);
  const named = hash.startsWith("case=");
  // What an earlier link or filter left would hide what this one points to.
  if (cell || named) for (const id of caseFilters) $(id).value = "";
  if (cell) { $("version").value = cell[1]; $("dtype").value = cell[2]; }
  if (named) { open = new Set([hash.slice(5)]); $("search").value = hash.slice(5); }
  shown = PAGE;
  drawCases();
}

function onCaseClick(event) {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.sort) {
    sorting = [button.dataset.sort, sorting[0] === button.dataset.sort ? -sorting[1] : 1];
  } else if (open.has(button.dataset.key)) {
    open.delete(button.dataset.key);
  } else {
    open.add(button.dataset.key);
  }
  drawCases();
  const again = [...$("cases").querySelectorAll("button")].find((b) => b.dataset.key === button.dataset.key && b.dataset.sort === button.dataset.sort);
  if (again) again.focus();
}

function selectedCases() {
  const search = $("search").value.trim().toLowerCase();
  const equal = [["configuration", "configuration"], ["suite", "suite"], ["version", "since_version"], ["dtype", "dtype"], ["outcome", "outcome"], ["placement", "placement"]]
    .filter(([id]) => $(id).value).map(([id, key]) => [key, $(id).value]);
  const found = data.cases.filter((c) => equal.every(([key, value]) => String(c[key] ?? "") === value) &&
    (!search || c.case_id.toLowerCase().includes(search) || (c.reason || "").toLowerCase().includes(search)));
  const by = columnsOfCases.find(([key]) => key === sorting[0])[2];
  return found.sort((a, b) => {
    const [x, y] = [by(a), by(b)];
    if (x === y) return a.case_id < b.case_id ? -1 : 1;
    if (x === null) return 1;
    if (y === null) return -1;
    return (x < y ? -1 : 1) * sorting[1];
  });
}

function drawCases() {
  const found = selectedCases();
  const head = columnsOfCases.map(([key, label, , kind]) => {
    const order = sorting[0] === key ? (sorting[1] > 0 ? "ascending" : "descending") : "none";
    const arrow = { ascending: " ▲", descending: " ▼", none: "" }[order];
    return `<th scope="col" class="${kind || ""}" aria-sort="${order}"><button data-sort="${key}">${label}${arrow}</button></th>`;
  });
  const lines = found.slice(0, shown).map(caseHtml);
  $("cases").innerHTML = `<thead><tr>${head.join("")}</tr></thead><tbody>${lines.join("")}</tbody>`;
  const passed = found.filter((c) => c.outcome === "passed");
  const accelerated = passed.filter((c) => c.placement === "accelerator");
  $("totals").textContent = `${plural(found.length, "case")}: ${count(passed.length)} passed, ${count(accelerated.length)} of them on the accelerator.`;
  $("more").hidden = found.length <= shown;
  $("more").textContent = `Show ${count(Math.min(PAGE, found.length - shown))} more of ${count(found.length - shown)}`;
}

function caseHtml(c) {
  const key = c.case_id + (data.configurations.length > 1 ? ` [${c.configuration}]` : "");
  const expanded = open.has(key);
  const why = [c.diagnosis, c.reason].filter(Boolean).map(text).join(": ");
  const row = `<tr><td>${badge(c.outcome)}</td><td class="id mono"><button data-key="${text(key)}" aria-expanded="${expanded}">${text(key)}</button></td>` +
    `<td class="n">${c.since_version || ""}</td><td class="mono">${text(c.dtype || "")}</td><td>${text(c.stage)}</td>` +
    `<td>${c.placement ? badge(c.placement) : ""}</td><td class="n">${figure(c.errors && c.errors.max_ulp)}</td>` +
    `<td class="n">${figure(c.errors && c.errors.max_abs)}</td><td class="n">${figure(c.cycles)}</td>` +
    `<td class="n">${figure(c.traffic_bytes)}</td><td class="n">${figure(c.energy_pj)}</td><td class="why"><div>${why}</div></td></tr>`;
  return expanded ? `${row}<tr class="detail"><td colspan="${columnsOfCases.length}">${detailHtml(c)}</td></tr>` : row;
}

function facts(title, pairs) {
  const kept = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  if (!kept.length) return "";
  return `<section><h3>${text(title)}</h3><dl>${kept.map(([name, value]) => `<dt>${text(name)}</dt><dd>${value}</dd>`).join("")}</dl></section>`;
}

function detailHtml(c) {
  const entries = (object, show) => Object.entries(object || {}).map(([key, value]) => [key, show(value)]);
  const json = (value) => (value === undefined ? "" : `<code>${text(JSON.stringify(value))}</code>`);
  const errors = c.errors || {};
  const hosts = (c.host_operators || []).map((h) => [h.operator, text(h.reason) + (h.location ? ` <span class="note">at ${text(h.location)}</span>` : "")]);
  const sections = [
    facts("Case", [["configuration", text(c.configuration)], ["suite", text(c.suite)], ["opset", c.opset || ""], ["shapes", json(c.shapes)],
      ["attributes", json(c.attributes)], ["data", text(c.data_class || "")], ["inputs", text(c.input_mode || "")], ["expected", c.expected ? text(c.expected) : ""]]),
    facts("Result", [["diagnosis", text(c.diagnosis || "")], ["reason", text(c.reason || "")], ["tolerance", text(c.tolerance_class || "")],
      ["max ulp", figure(errors.max_ulp)], ["max absolute", figure(errors.max_abs)], ["max relative", figure(errors.max_rel)], ["bias", figure(errors.bias)]]),
    facts("Oracles", [...entries(c.oracles, text), ["ruling", text(c.ruling || "")]]),
    facts("Cost", [["cycles", figure(c.cycles)], ["traffic, bytes", figure(c.traffic_bytes)], ["compulsory, bytes", figure(c.compulsory_bytes)],
      ["energy, pJ", figure(c.energy_pj)], ["peak SRAM, bytes", figure(c.peak_sram_bytes)], ["operators before", figure(c.operators_before)], ["operators after", figure(c.operators_after)],
      ...entries(c.utilization, (v) => `${figure(100 * v)} % busy`)]),
    facts("Host operators", hosts),
    facts("Milliseconds", [...entries(c.stage_ms, figure), ["CPU, all in", figure(c.cpu_ms)]]),
  ];
  const link = c.reproducer ? `<p>Standalone reproducer: <a href="${text(c.reproducer)}">${text(decodeURIComponent(c.reproducer.split("/").pop()))}</a></p>` : "";
  const source = c.source ? `<details><summary>Source of the reproducer</summary><pre><code>${text(c.source)}</code></pre></details>` : "";
  return `<div class="facts">${sections.join("")}</div>${link}${source}`;
}

startTheme();
if (data.page === "overview") startMatrix();
else if (data.page !== "models") startCases();
document.documentElement.dataset.ready = "yes";
