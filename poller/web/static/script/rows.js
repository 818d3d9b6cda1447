// Rows change by themselves, except in a table that the pointer, the focus or a selection is in.

const pendingRows = new Map(); // table id -> row keys

function busy(table) {
  const selection = document.getSelection();
  const selected = selection && !selection.isCollapsed && selection.containsNode(table, true);
  return selected || table.matches(":hover, :focus-within");
}

function patchRows(changed) {
  for (const [id, keys] of Object.entries(changed)) if (keys) pendingRows.set(id, keys);
  for (const id of pendingRows.keys()) updateRows(id);
}

function updateRows(id) {
  const table = document.querySelector(`[data-table="${CSS.escape(id)}"]`);
  if (!table?.querySelector("template")) return;
  const keys = pendingRows.get(id);
  const shown = new Set([...table.querySelectorAll("tbody tr")].map((row) => row.dataset.key));
  const waiting = difference(shown, keys);
  if (waiting && shown.size && busy(table)) offer(table, waiting);
  else arrange(table, keys);
}

// The number of rows that a change adds or takes away, whichever is more.
function difference(shown, keys) {
  const fresh = keys.filter((key) => !shown.has(key)).length;
  const gone = [...shown].filter((key) => !keys.includes(key)).length;
  return Math.max(fresh, gone);
}

function offer(table, waiting) {
  const button = table.querySelector(".changed");
  button.textContent = `${waiting} ${button.dataset.word ?? "changed"}, show`;
  button.hidden = false;
}

function arrange(table, keys) {
  const body = table.querySelector("tbody");
  const rows = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  for (const [key, row] of rows) if (!keys.includes(key)) discard(row);
  keys.forEach((key, position) => {
    const row = rows.get(key) ?? makeRow(table, key);
    if (body.rows[position] !== row) body.insertBefore(row, body.rows[position] ?? null);
  });
  table.querySelector(".changed").hidden = true;
  table.querySelector(".empty").hidden = keys.length > 0;
  pendingRows.delete(table.dataset.table);
}

function makeRow(table, key) {
  const row = table.querySelector("template").content.firstElementChild.cloneNode(true);
  row.dataset.key = key;
  for (const element of row.children) {
    const id = `${table.dataset.table}/${key}/${element.dataset.column}`;
    element.dataset.cell = id;
    write(element, texts.get(id) ?? "");
  }
  adopt(row);
  return row;
}

function discard(row) {
  for (const element of row.children) cells.delete(element.dataset.cell);
  row.remove();
}
