// How long messages took, from counted buckets: bucket b ends at 2^(b/2) ms, and its key is that end. Bars join buckets until there are few enough to be read.
import { bars, card } from "./charts.js";
import { count, duration, percent, share } from "./format.js";
import { h } from "./view.js";

const MOST_BARS = 14;
const POINTS = [0.5, 0.9, 0.99];
const bucketOf = (key) => Math.round(2 * Math.log2(Math.max(1, Number(key))));
const endOf = (bucket) => 2 ** (bucket / 2) / 1000;

const messagesOf = (row) => row.messages ?? row.statuses?.reduce((sum, status) => sum + (status.messages ?? 0), 0) ?? 0;

// [{ bucket, messages }] in order; what is no number, such as "negative", has no place on a scale.
function read(rows) {
    return rows.map((row) => ({ bucket: bucketOf(row.key), messages: messagesOf(row) }))
        .filter((row) => Number.isFinite(row.bucket) && row.messages > 0).sort((a, b) => a.bucket - b.bucket);
}

// The end of the bucket in which this share of all messages is reached: it is at most 41 % too large, and never too small.
function percentile(buckets, total, point) {
    let sum = 0;
    return endOf(buckets.find((row) => (sum += row.messages) >= point * total).bucket);
}

function joined(buckets) {
    const first = Math.ceil(buckets[0].bucket / 2), last = Math.ceil(buckets.at(-1).bucket / 2);
    const step = Math.ceil((last - first + 1) / MOST_BARS);
    const rows = Array.from({ length: Math.ceil((last - first + 1) / step) }, (_, index) => ({ bucket: 2 * (first + (index + 1) * step - 1), messages: 0 }));
    for (const { bucket, messages } of buckets)
        rows[Math.floor((Math.ceil(bucket / 2) - first) / step)].messages += messages;
    return rows;
}

// title: "Time to deliver"; what: "delivered"; from: "sent". Null where nothing is counted.
export function times(title, rows, what, from, tone) {
    const buckets = read(rows ?? []);
    if (buckets.length === 0)
        return null;
    const total = buckets.reduce((sum, row) => sum + row.messages, 0);
    const all = joined(buckets), most = Math.max(...all.map((row) => row.messages));
    let sum = 0;
    return card(title,
        h("ul", { class: "tiles" }, POINTS.map((point) => h("li", { key: point, "data-name": `p${point * 100}` },
            h("strong", null, duration(percentile(buckets, total, point))), h("span", null, `${percent(point).replace(/[.,]0/, "")} within`)))),
        h("p", { class: "fine" }, `From ${from} until ${what}, of ${count(total)} ${what} messages whose times are known.`),
        bars(all.map((row) => {
            sum += row.messages;
            return { key: row.bucket, label: `up to ${duration(endOf(row.bucket))}`, value: row.messages, most, tone,
                note: `${percent(share(row.messages, total))} of ${what}`, title: `${percent(share(sum, total))} of ${count(total)} took no longer` };
        }), `Messages by the time from ${from} until ${what}`));
}
