// The list of campaigns. Only the rows in sight are drawn, and pages of the list are fetched as they come near. Numbers change in place;
// the order changes only when nobody is pointing at a row.
import { get, hasAddress, isPassing, segment } from "./api.js";
import { notice, problem, sorter } from "./charts.js";
import { NONE, count, day, percent, share, short, time, visible } from "./format.js";
import { coalesce, h } from "./view.js";

const PAGE = 100;
// Of the list: class, head, what orders by it, and which way that goes at first.
const COLUMNS = [["c-name", "Campaign", "name", "ascending"], ["c-funnel", "Funnel"], ["c-targeted", "Targeted", "targeted", "descending"],
    ["c-sent", "Sent", "sent", "descending"], ["c-delivered", "Delivered", "delivered", "descending"], ["c-opened", "Opened", "opened", "descending"],
    ["c-clicked", "Clicked", "clicked", "descending"], ["c-failed", "Failed", "problems", "descending"], ["c-changed", "Changed", "changed", "descending"]];
const TURNED = { ascending: "descending", descending: "ascending" };
// Where there are no heads, and what no head orders by. "match" is the latest change, too, where nothing is searched.
const SORTS = [["match", "Last change"], ["name", "Name"], ["date", "Latest date"], ["rate", "Lowest delivery rate"], ["problems", "Most failures"], ["targeted", "Most targeted"],
    ["sent", "Most sent"], ["delivered", "Most delivered"], ["opened", "Most opened"], ["clicked", "Most clicked"], ["changed", "Last change, whatever fits"]];
const REFRESH_MS = 1000;
const IDLE_MS = 3000; // without a pointer over the list, it may be ordered again

export function campaigns(app, before) {
    const state = { query: "", sort: "match", reverse: false, rows: [], next: null, error: null, loaded: false, ...before, loading: false, fresh: new Set(), serial: 0,
        first: 0, end: 30, all: false, pointed: 0 };
    const places = new Map(state.rows.map((row, index) => [row.campaign_id, index])); // campaign id: index in rows

    function take(rows) {
        for (const row of rows) {
            const known = places.get(row.campaign_id);
            if (known !== undefined)
                state.rows[known] = row;
            else
                places.set(row.campaign_id, state.rows.push(row) - 1);
        }
    }

    async function page(restart) {
        if (state.loading && !restart)
            return;
        const serial = restart ? ++state.serial : state.serial;
        state.loading = true;
        try {
            const answer = await get("/campaigns", { q: state.query, sort: state.sort, reverse: state.reverse || null, after: restart ? null : state.next, limit: PAGE });
            if (serial !== state.serial)
                return;
            if (restart) {
                state.rows = [];
                places.clear();
                state.fresh.clear();
            }
            take(answer.campaigns);
            Object.assign(state, { next: answer.next ?? null, error: null, loaded: true });
        } catch (error) {
            if (serial !== state.serial || app.failed(error))
                return;
            state.error = error;
            if (isPassing(error))
                setTimeout(refresh, 2 * REFRESH_MS);
        } finally {
            if (serial === state.serial)
                state.loading = false;
        }
        app.draw();
    }

    // The campaigns that changed last are those that the stream has named: one request serves all rows in sight.
    const refresh = coalesce(async () => {
        const changed = [...state.waiting ?? []];
        state.waiting = null;
        if (mayReorder() || !state.loaded || state.error)
            return page(true);
        const answer = await get("/campaigns", { q: state.query, sort: "changed", limit: PAGE });
        const news = answer.campaigns.filter((row) => !places.has(row.campaign_id) && changed.includes(row.campaign_id));
        take(answer.campaigns.filter((row) => places.has(row.campaign_id)));
        if (!state.next)
            news.forEach((row) => state.fresh.add(row.campaign_id));
        app.draw();
    }, REFRESH_MS);

    function mayReorder() {
        const list = document.getElementById("list");
        return scrollY < 200 && state.rows.length <= PAGE && Date.now() - state.pointed > IDLE_MS && !list?.contains(document.activeElement);
    }

    // ---- what is in sight

    const height = () => (isNarrow() ? 108 : 56);
    function look() {
        const list = document.getElementById("list");
        if (!list)
            return;
        const above = Math.max(0, -list.getBoundingClientRect().top);
        const first = Math.max(0, Math.floor(above / height()) - 6);
        const end = Math.ceil((above + innerHeight) / height()) + 6;
        if (state.next && !state.loading && !state.error && end + PAGE / 2 > state.rows.length)
            page(false);
        if (first !== state.first || end !== state.end) {
            Object.assign(state, { first, end });
            app.draw();
        }
    }
    const onBeforePrint = () => {
        state.all = true;
        app.drawNow();
    };
    const onAfterPrint = () => {
        state.all = false;
        app.draw();
    };
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    addEventListener("beforeprint", onBeforePrint);
    addEventListener("afterprint", onAfterPrint);

    // The row that has the focus stays, however far the list is scrolled.
    function inSight() {
        if (state.all)
            return state.rows.slice(0, 1000).map((_, index) => index);
        const indexes = [];
        const focused = Number(document.activeElement?.closest?.("[data-index]")?.dataset.index ?? -1);
        const first = Math.min(state.first, Math.max(0, state.rows.length - 1)), end = Math.min(state.end, state.rows.length);
        if (focused >= 0 && focused < first)
            indexes.push(focused);
        for (let index = first; index < end; index++)
            indexes.push(index);
        if (focused >= end && focused < state.rows.length)
            indexes.push(focused);
        return indexes;
    }

    // ---- drawing

    let typing = null;
    const search = (event) => {
        state.query = event.target.value.trim();
        clearTimeout(typing);
        typing = setTimeout(() => page(true), 200);
    };
    const sort = (by, reverse) => {
        Object.assign(state, { sort: by, reverse });
        scrollTo(0, 0);
        page(true);
    };
    // Which way the list is ordered by a column; null: not by this one. What fits best comes first, or else the latest change.
    function direction([, , by, first]) {
        const sorted = state.sort === "match" ? (state.query ? null : "changed") : state.sort;
        return by === undefined || by !== sorted ? null : state.reverse ? TURNED[first] : first;
    }

    function tools() {
        return h("div", { class: "tools" },
            h("label", null, "Search ", h("input", { type: "search", value: state.query, oninput: search, autocomplete: "off", spellcheck: "false", maxlength: 200 })),
            h("label", { class: "order" }, "Order ", h("select", { value: state.sort, onchange: (event) => sort(event.target.value, false) }, SORTS.map(([value, text]) =>
                h("option", { value }, value === "match" && state.query ? "What fits best" : text)))),
            h("button", { type: "button", class: "quiet", onclick: () => page(true) },
                state.fresh.size > 0 ? `Show ${count(state.fresh.size)} new` : "Refresh"));
    }

    function head(column) {
        const [place, name, by] = column, way = direction(column);
        return h("span", { role: "columnheader", class: `${place} tone-${name.toLowerCase()}`, "data-tone": DRAWN.includes(name), "aria-sort": by && (way ?? "none") },
            by ? sorter(name, () => sort(by, way !== null && !state.reverse)) : name);
    }

    function list() {
        const total = state.rows.length;
        return h("div", { class: "list", role: "table", "aria-label": "Campaigns", "aria-rowcount": state.next ? -1 : total + 1, onpointermove: () => { state.pointed = Date.now(); } },
            h("div", { role: "rowgroup" }, h("div", { class: "row head", role: "row", "aria-rowindex": 1 },
                COLUMNS.map(head))),
            h("div", { id: "list", role: "rowgroup", class: "rows", style: { height: state.all ? "auto" : `${total * height()}px` } },
                inSight().map((index) => row(state.rows[index], index))));
    }

    function row(one, index) {
        const id = one.campaign_id;
        const text = visible(one.name ?? id) || "(no campaign)";
        const name = hasAddress(id) ? h("a", { href: `/campaign/${segment(id)}` }, text) : h("span", null, text);
        const about = [one.name != null && visible(id), one.date && day(one.date), one.org_id && visible(one.org_id)].filter(Boolean).join(" · ");
        return h("div", { key: id, class: "row", role: "row", "aria-rowindex": index + 2, "data-index": index,
            style: { transform: state.all ? "none" : `translateY(${index * height()}px)` } },
        h("span", { role: "cell", class: "c-name" }, name,
            h("small", null, about, one.provisional || one.pending?.messages > 0 ? h("span", { class: "tag" }, "provisional") : null)),
        h("span", { role: "cell", class: "c-funnel" }, h("span", { class: "mini" }, h("span", { class: "unseen" }, sentence(one)), miniature(one))),
        figure("c-targeted", one.targeted), figure("c-sent", one.sent),
        h("span", { role: "cell", class: "c-delivered", title: `${percent(one.delivery_rate)} delivered of sent` }, count(one.delivered),
            h("small", null, percent(one.delivery_rate), h("span", { class: "unseen" }, " delivered of sent"))),
        figure("c-opened", one.opened), figure("c-clicked", one.clicked), figure("c-failed", one.failed),
        h("span", { role: "cell", class: "c-changed" }, one.changed_at ? h("time", { datetime: one.changed_at }, time(one.changed_at)) : NONE));
    }

    return {
        title: "Campaigns",
        start: () => refresh(), // not page(): what the stream asks for at its opening is the same request
        stop() {
            removeEventListener("scroll", look);
            removeEventListener("resize", look);
            removeEventListener("beforeprint", onBeforePrint);
            removeEventListener("afterprint", onAfterPrint);
            refresh.stop();
        },
        changed(id) {
            (state.waiting ??= new Set()).add(id);
            refresh();
        },
        again: () => refresh(),
        keep: () => ({ query: state.query, sort: state.sort, reverse: state.reverse, rows: state.rows, next: state.next, loaded: state.loaded }),
        drawn: look,
        view: () => [
            h("h1", { key: "h", tabindex: "-1" }, "Campaigns"),
            tools(),
            state.error && problem(state.error),
            state.loaded && state.rows.length === 0
                ? notice(state.query ? `No campaign whose name or id contains “${state.query}”.` : "No campaign yet. They appear here as soon as the platform inserts their messages.")
                : list(),
        ],
    };
}

const DRAWN = ["Sent", "Delivered", "Opened", "Clicked", "Failed"]; // in the miniature
const isNarrow = () => matchMedia("(max-width: 1000px)").matches; // as in app.css
const figure = (place, value) => h("span", { role: "cell", class: place }, isNarrow() ? short(value) : count(value));

function sentence(one) {
    return `${count(one.sent)} sent of ${count(one.targeted)} targeted, ${percent(one.delivery_rate)} delivered of sent, ` +
        `${percent(share(one.opened, one.delivered))} opened of delivered, ${count(one.failed)} failed`;
}

// Each stage lies upon the one before; failures stand at the end, hatched.
function miniature(one) {
    const part = (value) => `${100 * (share(value, Math.max(one.targeted, one.sent, 1)) ?? 0)}%`;
    return ["sent", "delivered", "opened", "clicked", "failed"].map((stage) =>
        h("span", { class: `part tone-${stage}`, "aria-hidden": "true", style: { width: part(one[stage]) } }));
}
