// Companies as a CSV file that spreadsheets open as text.

const COLUMNS = ["id", "name", "sector", "industry", "country", "website", "tags", "description"];

export function csv(companies) {
  const rows = companies.map((company) => COLUMNS.map((column) => cell(company[column])));
  return [COLUMNS, ...rows].map((row) => `${row.join(",")}\r\n`).join("");
}

/** A spreadsheet runs what begins like a formula: an apostrophe before it makes it text. */
function cell(value) {
  const text = Array.isArray(value) ? value.join("; ") : String(value ?? "");
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function download(name, text) {
  // Excel takes a file for UTF-8 by its first mark alone.
  const url = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000); // once the browser has taken it
}
