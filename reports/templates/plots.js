"use strict";
// Draws the plots that stand in the page's data, sorts its tables, and switches between light and dark.
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;

function startTheme() {
  let stored = null;
  try { stored = localStorage.getItem("opatlas-theme"); } catch { /* a page opened from a file may have no storage */ }
  root.dataset.theme = stored || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("opatlas-theme", root.dataset.theme); } catch { /* as above */ }
    drawPlots();
  });
}

function themed(layout) {
  const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const axis = { gridcolor: color("--line"), zerolinecolor: color("--line"), linecolor: color("--line"), automargin: true };
  return { ...layout, paper_bgcolor: color("--ground"), plot_bgcolor: color("--ground"), font: { color: color("--text") },
    xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis } };
}

function drawPlots() {
  for (const [id, plot] of Object.entries(data.plots)) {
    Plotly.react(id, plot.data, themed(plot.layout), { responsive: true, displaylogo: false });
  }
}

function keyOf(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.value === undefined) return cell.textContent.trim();
  return cell.dataset.value === "" ? null : Number(cell.dataset.value);
}

function sortBy(table, column, header) {
  const ascending = header.getAttribute("aria-sort") === "descending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows].map((row, place) => [keyOf(row, column), place, row]);
  rows.sort(([a, i], [b, j]) => {
    if (a === null || b === null) return (a === null) - (b === null) || i - j;
    return (a < b ? -1 : a > b ? 1 : 0) * (ascending ? 1 : -1) || i - j;
  });
  table.tBodies[0].append(...rows.map(([, , row]) => row));
}

function startSorting() {
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sortBy(table, column, header));
    });
  }
}

startTheme();
startSorting();
drawPlots();
root.dataset.ready = "yes";
