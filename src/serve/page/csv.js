// Files for spreadsheets. They take a text that begins like a formula for one, so it gets a quote in front; and only with a mark at the
// beginning they know that it is UTF-8. Times are in UTC, as everywhere in the interface.
import { save } from "./api.js";

const FORMULA = /^[=+@\-\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;
const cell = (value) => (value == null ? "" : typeof value === "string" ? `"${(FORMULA.test(value) ? `'${value}` : value).replaceAll('"', '""')}"` : String(value));

// rows: arrays of texts and numbers, the head first. parts: of the file's name.
export function saveCsv(rows, parts) {
    const text = rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
    const name = parts.filter(Boolean).map((part) => part.replace(/[^\p{L}\p{M}\p{N}._-]+/gu, "-").replace(/^[.-]+|-+$/g, "").slice(0, 60));
    save(new Blob(["\ufeff", text], { type: "text/csv" }), `${name.filter(Boolean).join("-")}.csv`);
}
