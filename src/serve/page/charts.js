// Parts that several pages share: bars as a list, notices, tables, the timeline.
import { NONE, bytes, count, duration, minuteOf, short, time, visible, words } from "./format.js";
import { h } from "./view.js";

// A list of bars; the text says all that the bar shows. rows: { key, label, value, most, figure, note, title, tone, code }
export function bars(rows, name) {
    return h("ul", { class: "bars", "aria-label": name },
        rows.map((row) => h("li", { key: row.key ?? row.label, "data-name": row.key, class: row.value > 0 ? null : "zero", title: row.title ?? `${row.label}: ${row.figure ?? count(row.value)}, ${row.note}` },
            h("span", { class: "bar-label" }, row.label, row.code && h("small", null, ` ${row.code}`)),
            h("span", { class: "track", "aria-hidden": "true" },
                h("span", { class: `fill ${row.tone ?? "tone-plain"}`, style: { width: `${100 * Math.min(1, row.most > 0 ? row.value / row.most : 0)}%` } })),
            h("span", { class: "bar-figure" }, row.figure ?? count(row.value)),
            h("span", { class: "bar-note" }, row.note ?? ""))));
}

export function card(title, ...content) {
    const id = `part-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
    return h("section", { class: "card", key: title, "aria-labelledby": id }, h("h2", { id }, title), content);
}

export const notice = (text, tone) => h("p", { class: `notice ${tone ?? ""}` }, text);

// What a refused or failed request means for the reader. 501 says which key of the configuration switches a part on.
export function problem(error) {
    if (error.status === 501)
        return notice(`Not kept here: ${error.detail || error.title}`);
    return notice(error.status === 403 ? `Not allowed: ${error.detail || error.title}` : error.detail || error.title || String(error), "bad");
}

// ---- tables of whatever the API answers: the ends of names say what values are

const NAMES = { as_of: "As of", behind_s: "Behind", lag_records: "Lag, records", letters: "Dead letters", parked: "Parked receipts", org_id: "Organisation",
    oldest_unapplied_at: "Oldest not applied", delay_p50_ms: "Delay, half within", delay_p99_ms: "Delay, 99% within", deliver_p50_ms: "Delivered, half within", deliver_p99_ms: "Delivered, 99% within", contradictions_won: "Contradictions, won",
    contradictions_lost: "Contradictions, lost", unknown: "Of unknown messages", disorder: "Late", events_committed: "Receipts", fence_conflicts: "Fence conflicts" };
export const label = (name) => NAMES[name] ?? words(name);

function cell(name, value) {
    if (value === null || value === undefined || value === "")
        return NONE;
    if (typeof value === "boolean")
        return value ? "yes" : "no";
    if (Array.isArray(value))
        return value.map((item) => cell(name, item)).join(", ") || NONE;
    if (typeof value === "object" && "tag" in value)
        return value; // drawn by the caller
    if (typeof value === "object")
        return Object.entries(value).map(([inner, item]) => `${inner.replace(/_/g, " ")} ${cell(inner, item)}`).join(", ");
    if (/(_at|^at|^hour|_until|^until|^as_of)$/.test(name) && typeof value === "string")
        return time(value);
    if (typeof value === "number" && !/(^|_)(pid|partition|lane|connection|version|port|code)$/.test(name))
        return name.endsWith("bytes") ? bytes(value) : name.endsWith("_ms") ? duration(value / 1000) : name.endsWith("_s") ? duration(value) : count(value);
    return name === "status" ? words(value) : visible(value);
}

const LONG = 32; // characters, from which on a cell is wrapped
const isLong = (text) => typeof text === "string" && text.length > LONG;

// The head of a column that orders. Paper has its text, but nothing to click.
export const sorter = (text, onclick) => [h("button", { type: "button", class: "sort", onclick }, text), h("span", { class: "paper" }, text)];

// By which column the reader ordered a table of this name, and which way.
const orders = new Map();

// What is not known comes last, either way.
function ordered(rows, order) {
    const { column, falls } = order ?? {};
    const isMissing = (row) => row[column] === null || row[column] === undefined || row[column] === "";
    const compare = (one, other) => (typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other), undefined, { numeric: true }));
    return order ? [...rows].sort((a, b) => isMissing(a) - isMissing(b) || (falls ? -1 : 1) * compare(a[column], b[column])) : rows;
}

// drawn: functions of the row, for columns that are no plain value.
export function table(name, rows, columns, drawn) {
    const names = columns ?? [...new Set(rows.flatMap((row) => Object.keys(row)))];
    const numbers = new Set(names.filter((column) => rows.some((row) => typeof row[column] === "number")));
    const order = orders.get(name);
    const head = (column) => {
        const text = label(column), falls = order?.column === column ? order.falls : null;
        const sort = () => {
            orders.set(name, { column, falls: falls === null ? numbers.has(column) : !falls });
            dispatchEvent(new Event("reorder"));
        };
        return h("th", { scope: "col", class: numbers.has(column) ? "number" : "", "aria-sort": falls === null ? "none" : falls ? "descending" : "ascending" },
            sorter(text, sort));
    };
    return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": name },
        h("table", null, h("caption", { class: "unseen" }, name),
            h("thead", null, h("tr", null, names.map((column) => (column === "choose" ? h("th", { scope: "col" }, label(column)) : head(column))))),
            h("tbody", null, ordered(rows, order).map((row) => h("tr", null, names.map((column) => {
                const text = drawn?.[column] ? drawn[column](row) : cell(column, row[column]);
                return h("td", { class: numbers.has(column) ? "number" : isLong(text) ? "long" : "" }, text);
            }))))));
}

// What is null is left out: the server does not know it.
export function facts(object) {
    return h("dl", { class: "facts" }, Object.entries(object).filter(([, value]) => value !== null && value !== undefined).map(([name, value]) =>
        h("div", { key: name }, h("dt", null, label(name)), h("dd", null, cell(name, value)))));
}

// ---- the timeline

const HEIGHT = 240, LEFT = 56, RIGHT = 12, TOP = 10, BOTTOM = 26;

function niceTop(most) {
    const size = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
    return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * size).find((top) => top >= most) ?? size * 10;
}

// Hours without a receipt are missing in the answer; the line has to go down to zero there.
export function fillGaps(points, stepMs) {
    const filled = [];
    for (const point of points) {
        const at = Date.parse(point.at);
        let last = filled.at(-1);
        while (last && at - last.ms > stepMs && filled.length < 5000) {
            last = { ms: last.ms + stepMs, statuses: {} };
            filled.push(last);
        }
        filled.push({ ms: at, statuses: point.statuses });
    }
    return filled;
}

// state: { width, cursor, isOver(point) }; series: [{ name, tone, dash, of(point) }]. A slider for the keyboard and screen readers: each step is a
// point. A step that is not over stands apart: the line does not fall to what has come of it so far.
export function timeline(points, series, state, onMove) {
    const last = points.length - 1;
    const cursor = Math.min(state.cursor ?? last, last);
    const withDay = new Date(points[0].ms).toDateString() !== new Date(points[last].ms).toDateString();
    const over = points.filter(state.isOver).length;
    const text = `${minuteOf(points[cursor].ms, withDay)}${cursor < over ? "" : ", so far"}: ` + series.map((one) => `${words(one.name)} ${count(one.of(points[cursor]))}`).join(", ");
    const move = (to) => onMove(Math.max(0, Math.min(last, to)));
    const onkeydown = (event) => {
        const to = { ArrowLeft: cursor - 1, ArrowDown: cursor - 1, ArrowRight: cursor + 1, ArrowUp: cursor + 1, PageUp: cursor + 10,
            PageDown: cursor - 10, Home: 0, End: last }[event.key];
        if (to === undefined)
            return;
        event.preventDefault();
        move(to);
    };
    const onpointermove = (event) => {
        const box = event.currentTarget.getBoundingClientRect();
        move(Math.round((event.clientX - box.left - LEFT) / Math.max(1, box.width - LEFT - RIGHT) * last));
    };
    return h("div", { class: "timeline" },
        h("ul", { class: "legend" }, series.map((one) => h("li", { key: one.name },
            h("svg", { class: one.tone, viewBox: "0 0 28 10", width: 28, height: 10, "aria-hidden": "true" },
                h("path", { d: "M1 5H27", "stroke-dasharray": one.dash })), words(one.name))), over < points.length && h("li", { key: "" },
            h("svg", { class: "tone-plain", viewBox: "0 0 10 10", width: 10, height: 10, "aria-hidden": "true" }, h("circle", { class: "open", cx: 5, cy: 5, r: 3.5 })), "So far: not over yet")),
        h("p", { class: "reading", "aria-hidden": "true" }, text),
        h("div", { class: "plot", tabindex: "0", role: "slider", "aria-label": "Timeline: arrow keys read the points", "aria-valuemin": 0, "aria-valuemax": last,
            "aria-valuenow": cursor, "aria-valuetext": text, onkeydown, onpointermove },
        plot(points, series, state.width, cursor, withDay, over)));
}

function plot(points, series, width, cursor, withDay, over) {
    const top = niceTop(Math.max(1, ...points.map((point) => Math.max(...series.map((one) => one.of(point))))));
    const last = points.length - 1;
    const x = (index) => Math.round((LEFT + (last > 0 ? index / last : 0.5) * (width - LEFT - RIGHT)) * 10) / 10;
    const y = (value) => Math.round((TOP + (1 - Math.max(0, value) / top) * (HEIGHT - TOP - BOTTOM)) * 10) / 10;
    const marks = Math.max(1, Math.min(last, Math.floor((width - LEFT) / (withDay ? 160 : 90))));
    const times = last > 0 ? [...new Set(Array.from({ length: marks + 1 }, (_, mark) => Math.round(mark / marks * last)))] : [0];
    const anchor = (index) => (index === 0 && last > 0 ? "start" : index === last && last > 0 ? "end" : "middle");
    return h("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-hidden": "true" },
        [0, 0.5, 1].map((part) => h("g", { class: "grid" },
            h("path", { d: `M${LEFT} ${y(part * top)}H${width - RIGHT}` }),
            h("text", { x: LEFT - 8, y: y(part * top) + 4, "text-anchor": "end" }, short(part * top)))),
        times.map((index) => h("text", { x: x(index), y: HEIGHT - 6, "text-anchor": anchor(index) }, minuteOf(points[index].ms, withDay))),
        h("path", { class: "cursor", d: `M${x(cursor)} ${TOP}V${HEIGHT - BOTTOM}` }),
        series.map((one) => h("g", { class: one.tone, key: one.name },
            h("path", { class: "line", "stroke-dasharray": one.dash, d: points.slice(0, over).map((point, index) => `${index ? "L" : "M"}${x(index)} ${y(one.of(point))}`).join("") }),
            points.slice(over).map((point, index) => h("circle", { class: "open", cx: x(over + index), cy: y(one.of(point)), r: 3.5 })),
            h("circle", { cx: x(cursor), cy: y(one.of(points[cursor])), r: 4 }))));
}
