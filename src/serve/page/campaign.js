// One campaign: funnel, rates, where messages stand, failures, timeline. Each share names its denominator, on sight and for screen readers.
import { address, download, get, hasToken, isPassing, segment } from "./api.js";
import { bars, card, fillGaps, notice, problem, timeline } from "./charts.js";
import { saveCsv } from "./csv.js";
import { NONE, base, count, day, duration, percent, share, time, visible, words, zone } from "./format.js";
import { times } from "./times.js";
import { coalesce, h } from "./view.js";

const FUNNEL_MS = 1000, SERIES_MS = 5000, PARTS_MS = 15_000, PENDING_MS = 60_000;
const TONES = { SENT: "tone-sent", DELIVERED: "tone-delivered", OPENED: "tone-opened", CLICKED: "tone-clicked" };
const IN_ORDER = ["tone-plain", "tone-early", "tone-sent", "tone-delivered", "tone-opened", "tone-clicked"];
const DASHES = { DELIVERED: null, OPENED: "7 3", CLICKED: "2 3" };
const MACHINES = ["MACHINE_OPEN", "BOT_CLICK"];
const STEPS = { hour: 3_600_000, minute: 60_000 };
const PARTS = ["variant", "channel", "gateway", "reason", "time_to_deliver", "time_to_open"]; // of ?by=; a server that does not know one answers 400
const REASONS = { absent: "Cannot be reached now", invalid: "No such recipient", blocked: "Refused", opted_out: "Recipient does not want it", sender: "Sender not accepted",
    content: "Content not acceptable", spam: "Taken for spam", credit: "Not paid for", network: "No route, or a fault", expired: "Time was over", unknown: "No known code" };
const FOR_GOOD = [400, 403, 404, 501];

// A message that was never meant to be sent has not failed; the list counts the same way.
const isFailure = (status) => status.kind === "failure" && status.name !== "SKIPPED";

// From the root to the last stage that is no failure: a ladder of the user's own has other names, but the same form.
function mainLine(statuses) {
    const byKey = new Map(statuses.flatMap((status) => [[status.code, status], [status.name, status]]));
    const line = [];
    let status = statuses.filter((one) => one.kind !== "failure").reduce((best, one) => (!best || one.code > best.code ? one : best), null);
    for (; status && line.length < statuses.length; status = status.parent == null ? null : byKey.get(status.parent))
        line.unshift(status);
    return line;
}

export function campaign(app, id) {
    const state = { funnel: null, pushes: 0, pause: 0, pending: null, error: null, step: "hour", series: null, seriesError: null, width: 900, cursor: null,
        parts: Object.fromEntries(PARTS.map((name) => [name, {}])), wanted: "" };
    const path = `/campaigns/${segment(id)}`;

    const refresh = coalesce(async () => {
        const { pushes } = state;
        try {
            const funnel = await get(path);
            if (pushes === state.pushes) // otherwise the stream has brought one that is newer, or is about to
                Object.assign(state, { funnel, error: null });
        } catch (error) {
            if (app.failed(error))
                return;
            state.error = error;
            if (isPassing(error))
                setTimeout(refresh, 2 * FUNNEL_MS);
        }
        app.draw();
    }, FUNNEL_MS);

    const refreshSeries = coalesce(async () => {
        const step = state.step;
        try {
            const answer = await get(`${path}/timeline`, { step });
            if (step === state.step)
                Object.assign(state, { series: fillGaps(answer.points, STEPS[step]), seriesError: null });
        } catch (error) {
            Object.assign(state, { series: null, seriesError: error });
        }
        app.draw();
    }, () => Math.max(SERIES_MS, state.pause));

    // Parts that this database may not keep: what is refused for good is not asked for again.
    const refreshParts = coalesce(async () => {
        await Promise.all(Object.entries(state.parts).map(async ([by, part]) => {
            if (!FOR_GOOD.includes(part.error?.status))
                await get(path, { by }).then((answer) => Object.assign(part, { rows: answer.by ?? null, error: null }), (error) => { part.error = error; });
        }));
        app.draw();
    }, () => Math.max(PARTS_MS, 3 * state.pause));

    // It reads each message of the campaign, so it is asked for when the page is opened, and then by the minute. A large campaign may have no answer.
    const refreshPending = coalesce(async () => {
        await get(path, { pending: true }).then((answer) => { state.pending = answer.pending ?? null; }, () => {});
        app.draw();
    }, () => Math.max(PENDING_MS, 3 * state.pause));

    const parts = () => [refreshSeries, refreshParts, refreshPending].forEach((ask) => ask());
    const all = () => {
        refresh();
        parts();
    };

    // The stream brings the funnel with the news; what else there is has to be fetched, the less often the more people look.
    function changed(data) {
        if (!data.funnel)
            return all();
        Object.assign(state, { funnel: data.funnel, error: null, pushes: state.pushes + 1, pause: 1000 * data.pause_s });
        app.draw();
        return parts();
    }

    const measure = () => {
        const width = Math.round(document.querySelector(".timeline")?.clientWidth ?? 0);
        if (width > 0 && width !== state.width) {
            state.width = width;
            app.draw();
        }
    };
    addEventListener("resize", measure);

    // ---- parts of the page

    function head(funnel) {
        const pending = funnel.pending ?? state.pending;
        return h("div", { class: "intro" },
            trail(funnel), heading(),
            h("p", { class: "as-of" }, "As of ", funnel.as_of ? h("time", { datetime: funnel.as_of, title: funnel.as_of }, time(funnel.as_of)) : NONE,
                ` in ${zone}, the time of the newest receipt that is counted. `,
                funnel.behind_s > 1 && h("strong", null, `${duration(funnel.behind_s)} behind. `),
                funnel.proof && `Recounted from the messages ${time(funnel.proof.at)}: `,
                funnel.proof && (funnel.proof.cells_off === 0 ? "no difference." : h("strong", null, `${count(funnel.proof.cells_off)} figures were off.`))),
            h("p", { class: "as-of" }, pending?.messages > 0 && [h("span", { class: "tag" }, "provisional"),
                ` ${count(pending.messages)} messages have no final status yet${pending.until ? `; receipts may come until ${time(pending.until)}` : ""}.`]));
    }

    const title = () => visible(state.funnel?.name ?? id);
    const heading = () => h("h1", { key: "h", tabindex: "-1" }, title());
    const trail = (funnel) => h("p", { class: "trail" }, h("a", { href: "/" }, "Campaigns"), funnel && [
        visible(funnel.org_id ?? "of several organisations, or of none"), funnel.name != null && visible(id), funnel.date && day(funnel.date)]
        .filter(Boolean).map((part) => ` / ${part}`));

    // A file of this campaign: its first columns say so, since people join such files.
    const file = (part, head, rows) => h("p", { class: "buttons" }, h("button", { type: "button", class: "quiet", onclick: () => {
        const { name } = state.funnel;
        saveCsv([["campaign_id", "campaign_name", ...head], ...rows().map((row) => [id, name, ...row])], [name, id, part]);
    } }, `${words(part)} as CSV`));

    // Those between two stages of the funnel are what most readers look for; the others stand below them, smaller.
    function rates(funnel, line) {
        const stages = new Set(line.map((status) => status.name));
        const known = new Map([...funnel.statuses, ...funnel.flags ?? []].map((status) => [status.name, status]));
        const ratios = (funnel.rates ?? []).map((rate) => {
            const of = (part) => amount(String(part).split("+"), (name) => known.get(name)?.messages);
            const above = of(rate.numerator), below = of(rate.denominator);
            // Some rates count receipts or customers, not messages: these two numbers are not theirs.
            const isOfMessages = !rate.name.includes("customers") && (below === 0 || Math.abs(above / below - rate.value) < 1e-9);
            return { ...rate, detail: isOfMessages && below > 0 ? `${count(above)} of ${count(below)}` : "",
                isMain: isOfMessages && stages.has(rate.numerator) && stages.has(rate.denominator), place: known.get(rate.numerator)?.code ?? 0 };
        });
        const draw = (rate) => h("li", { key: rate.name, title: `${percent(rate.value)} ${rate.label}${rate.detail && `: ${rate.detail}`}` },
            h("strong", null, percent(rate.value)), h("span", null, rate.label), h("small", null, rate.detail));
        const main = ratios.filter((rate) => rate.isMain).sort((a, b) => a.place - b.place), others = ratios.filter((rate) => !rate.isMain);
        return ratios.length > 0 && card("Rates", main.length > 0 && h("ul", { class: "tiles" }, main.map(draw)),
            others.length > 0 && h("ul", { class: "tiles small" }, others.map(draw)));
    }

    function stages(line) {
        const root = line[0];
        return card("Funnel", bars(line.map((status, index) => {
            const before = line[index - 1];
            const ofBefore = before && `${percent(share(status.messages, before.messages))} of ${base(before.name)}`;
            const ofRoot = index > 1 ? `, ${percent(share(status.messages, root.messages))} of ${base(root.name)}` : "";
            return { key: status.name, label: words(status.name), value: status.messages, most: root.messages, tone: TONES[status.name] ?? IN_ORDER[index % IN_ORDER.length],
                note: before ? ofBefore + ofRoot : "all messages of the campaign",
                title: `${words(status.name)}: ${count(status.messages)} messages${before ? `, ${ofBefore}${ofRoot}` : ""}; ${count(status.events)} receipts named it` };
        }), "Messages that reached each stage"), file("funnel", ["as_of", "status", "messages", "receipts", "current", "customers", "logical_messages"], () => [
            ...state.funnel.statuses, ...state.funnel.flags ?? []].map((one) => [state.funnel.as_of, one.name, one.messages, one.events, one.current, one.customers, one.logical])));
    }

    // Of what counts as one: null where the database does not keep it (counters.groups).
    function groups(line) {
        const draw = (name, title, one, note) => line.every((status) => status[name] != null) && card(title,
            bars(line.map((status, index) => {
                const before = line[index - 1];
                const note = before ? `${percent(share(status[name], before[name]))} of ${base(before.name)}` : `all ${one}`;
                return { key: status.name, label: words(status.name), value: status[name], most: line[0][name], tone: TONES[status.name] ?? IN_ORDER[index % IN_ORDER.length],
                    note, title: `${words(status.name)}: ${count(status[name])} ${one}, ${note}` };
            }), `${title} that reached each stage`), h("p", { class: "fine" }, note));
        return [draw("customers", "Customers", "customers", "Each customer counts once, however many messages the campaign sent to them. As of the last roll-up, moments ago."),
            draw("logical", "Logical messages", "logical messages", "Attempts at one message count once, by the furthest of them. As of the last roll-up, moments ago.")];
    }

    // Every row is there from the beginning, so none moves the page when its first message comes.
    function standing(statuses) {
        const all = amount(statuses, (status) => status.current), failed = amount(statuses.filter(isFailure), (status) => status.current);
        const rows = statuses.filter((status) => !isFailure(status)).map((status) => ({ key: status.name, label: words(status.name), value: status.current ?? 0, tone: TONES[status.name] }));
        rows.push({ key: "failures", label: "Failed, see failures", value: failed, tone: "tone-failed" });
        return card("Where messages stand now", bars(rows.map((row) => ({ ...row, most: all, note: `${percent(share(row.value, all))} of all messages` })),
            "Messages by their present status"));
    }

    // A message that failed and was corrected is no failure any more: `current` knows.
    function failures(statuses, root) {
        const of = (status) => status.current ?? status.messages;
        const rows = statuses.filter(isFailure);
        const total = amount(rows, of);
        return card("Failures",
            h("p", { class: "sum" }, h("strong", null, count(total)), ` messages failed, ${percent(share(total, root.messages))} of ${base(root.name)}.`),
            bars(rows.map((status) => ({ key: status.name, label: words(status.name), value: of(status), most: total,
                tone: "tone-failed", note: `${percent(share(of(status), total))} of failures` })), "Failed messages by status"),
            app.may("support") && recipients(statuses));
    }

    function reasons() {
        const rows = sized("reason", (row) => amount(row.statuses, (status) => status.events || status.messages));
        const total = amount(rows, (row) => row.value);
        return rows.length > 0 && card("Failures by reason", bars(rows.map((row) => ({ key: row.key, label: REASONS[row.key] ?? visible(row.key || "no reason given"), value: row.value, most: total,
            tone: "tone-failed", note: `${percent(share(row.value, total))} of receipts with a reason` })), "Receipts of failures by reason"));
    }

    // Rows of a part with their sizes, the largest first; none where the database does not keep it.
    function sized(name, of) {
        return (state.parts[name].rows ?? []).map((row) => ({ ...row, value: of(row) })).filter((row) => row.value > 0).sort((a, b) => b.value - a.value);
    }

    function recipients(statuses) {
        const parameters = { status: state.wanted, format: "csv" };
        const fetchThem = () => download(`${path}/recipients`, parameters).catch((error) => app.failed(error) || app.say(error.message));
        const choose = (event) => {
            state.wanted = event.target.value;
            app.draw();
        };
        return h("p", { class: "tools csv" },
            h("label", null, "Recipients ", h("select", { value: state.wanted, onchange: choose }, h("option", { value: "" }, "all"),
                statuses.map((status) => h("option", { value: status.name }, words(status.name))))),
            hasToken() ? h("button", { key: "csv", type: "button", class: "quiet", onclick: fetchThem }, "as CSV")
                : h("a", { key: "csv", class: "button quiet", href: address(`${path}/recipients`, parameters), download: true }, "as CSV"));
    }

    function flags(funnel, delivered) {
        const known = (funnel.flags ?? []).filter((flag) => flag.messages > 0 || MACHINES.includes(flag.name));
        const rows = (some) => bars(some.map((flag) => ({ key: flag.name, label: words(flag.name), value: flag.messages, most: delivered?.messages ?? 0,
            tone: "tone-plain", note: delivered ? `${percent(share(flag.messages, delivered.messages))} of ${base(delivered.name)}` : "" })), "Messages with a flag");
        const machines = known.filter((flag) => MACHINES.includes(flag.name)), others = known.filter((flag) => !MACHINES.includes(flag.name));
        return [machines.length > 0 && card("Machines, counted apart", rows(machines),
            h("p", { class: "fine" }, "Mail services and scanners open and click by themselves. These messages are not among those opened or clicked, unless a person did so too.")),
        others.length > 0 && card("Answers and complaints", rows(others))];
    }

    function history(line, statuses) {
        const failed = statuses.filter(isFailure).map((status) => status.name);
        const named = line.slice(-3).map((status, index) => ({ name: status.name, tone: TONES[status.name] ?? IN_ORDER[3 + index],
            dash: DASHES[status.name] ?? null, of: (point) => point.statuses[status.name] ?? 0 }));
        const series = [...named, { name: "FAILED", tone: "tone-failed", dash: "9 3 2 3", of: (point) => amount(failed, (name) => point.statuses[name] ?? 0) }];
        const button = (step) => h("button", { type: "button", class: "quiet", "aria-pressed": String(state.step === step), onclick: () => {
            Object.assign(state, { step, cursor: null });
            refreshSeries.now();
        } }, `By ${step}`);
        const names = statuses.map((status) => status.name);
        const move = (cursor) => {
            state.cursor = cursor;
            app.draw();
        };
        const body = state.seriesError ? problem(state.seriesError)
            : !state.series ? h("div", { class: "timeline empty" })
                : state.series.length === 0 ? notice("No receipt yet.") : [timeline(state.series, series, { ...state, isOver }, move), asTable(series), file("timeline", ["step", "at", ...names], () =>
                    state.series.map((point) => [state.step, new Date(point.ms).toISOString(), ...names.map((status) => point.statuses[status] ?? 0)]))];
        return card("Timeline", state.seriesError ? null : h("p", { class: "buttons" }, Object.keys(STEPS).map(button)), body);
    }

    // A step counts as over when all of its receipts may be counted: the last one would look like a fall.
    function isOver(point) {
        const { as_of, behind_s } = state.funnel;
        return point.ms + STEPS[state.step] <= (behind_s == null ? Date.parse(as_of) : Date.now() - 1000 * behind_s);
    }

    function asTable(series) {
        return h("details", null, h("summary", null, "The same as a table"), h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Timeline as a table" },
            h("table", null, h("thead", null, h("tr", null, [`Time, ${zone}`, ...series.map((one) => words(one.name))].map((name) => h("th", { scope: "col" }, name)))),
                h("tbody", null, state.series.slice(-200).reverse().map((point) => h("tr", { key: point.ms }, h("th", { scope: "row" }, time(point.ms), isOver(point) ? "" : h("small", null, " so far")),
                    series.map((one) => h("td", { class: "number" }, count(one.of(point))))))))));
    }

    // How much each gateway, variant or channel carries, and how well: what goes wrong is a gateway's, what people do a variant's.
    function dimension(by, title, statuses) {
        const failed = statuses.filter(isFailure).map((status) => status.name);
        const of = (row, name) => row.statuses.find((status) => status.name === name)?.messages ?? 0;
        const rows = sized(by, (row) => Math.max(0, ...row.statuses.map((status) => status.messages ?? 0)));
        const total = amount(rows, (row) => row.value);
        const rate = (row, name, of_) => `${percent(share(of(row, name), of(row, of_)))} ${words(name).toLowerCase()} of ${base(of_)}`;
        const end = (row) => (by === "gateway" ? `${percent(share(amount(failed, (name) => of(row, name)), row.value))} failed`
            : `${rate(row, "OPENED", "DELIVERED")}, ${rate(row, "CLICKED", "DELIVERED")}`);
        return rows.length > 0 && card(title, bars(rows.map((row) => ({ key: row.key, label: visible(row.key || "no name"), value: row.value, most: total, tone: "tone-sent",
            note: `${percent(share(row.value, total))} of messages; ${rate(row, "DELIVERED", "SENT")}, ${end(row)}` })), `Messages by ${by}`));
    }

    function delays() {
        return [times("Time to deliver", state.parts.time_to_deliver.rows, "delivered", "sent", "tone-delivered"),
            times("Time to open", state.parts.time_to_open.rows, "opened", "delivered", "tone-opened")];
    }

    return {
        get title() {
            return title();
        },
        stream: id,
        start: all,
        stop() {
            removeEventListener("resize", measure);
            [refresh, refreshSeries, refreshParts, refreshPending].forEach((ask) => ask.stop());
        },
        changed: (other, data) => other === id && changed(data),
        again: all,
        drawn: measure,
        view() {
            const { funnel } = state;
            if (!funnel) {
                // The heading stands where head() has it, so that it keeps the focus when the funnel comes.
                return [h("div", { class: "intro" }, trail(), heading()), state.error
                    ? (state.error.status === 404 ? notice("No such campaign, or none that you may see.") : problem(state.error)) : h("div", { class: "card empty" })];
            }
            const line = mainLine(funnel.statuses);
            const delivered = funnel.statuses.find((status) => status.name === "DELIVERED");
            return [head(funnel), state.error && problem(state.error), stages(line), h("div", { class: "pair" }, groups(line)),
                h("div", { class: "pair" }, standing(funnel.statuses), failures(funnel.statuses, line[0])),
                rates(funnel, line), history(line, funnel.statuses), h("div", { class: "pair" }, delays()),
                h("div", { class: "pair" }, reasons(), dimension("gateway", "Gateways", funnel.statuses)),
                h("div", { class: "pair" }, dimension("variant", "Variants", funnel.statuses), dimension("channel", "Channels", funnel.statuses)), flags(funnel, delivered)];
        },
    };
}

function amount(items, of) {
    return items.reduce((sum, item) => sum + (of(item) ?? 0), 0);
}
