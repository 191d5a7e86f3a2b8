// Draws the page: h() describes elements, patch() makes a node's children equal to a description. It keeps the nodes that it can, so
// focus, selection and scroll positions survive a change of numbers. All text becomes text nodes: nothing is ever parsed as HTML.
const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "open", "indeterminate"]);

// h("p", { class: "note" }, "text", other, …); null and false are left out. A key keeps a node with its thing when others move.
export function h(tag, attributes, ...children) {
    return { tag, attributes: attributes ?? {}, children: children.flat(Infinity).filter((child) => child != null && child !== false) };
}

export function patch(parent, children) {
    reconcile(parent, [children].flat(Infinity).filter((child) => child != null && child !== false), parent.namespaceURI === SVG);
}

function create(child, isSvg) {
    if (typeof child !== "object")
        return document.createTextNode(String(child));
    return isSvg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
}

function fits(node, child) {
    if (typeof child !== "object")
        return node.nodeType === Node.TEXT_NODE;
    return node.nodeType === Node.ELEMENT_NODE && node.localName === child.tag && node.key === child.attributes.key;
}

function reconcile(parent, children, isSvg) {
    const wanted = new Set(children.map((child) => child.attributes?.key));
    const keyed = new Map();
    for (const node of [...parent.childNodes]) {
        if (node.key === undefined)
            continue;
        if (wanted.has(node.key))
            keyed.set(node.key, node);
        else
            node.remove(); // before others are placed: those that stay need not move then, and a node that moves loses the focus
    }
    let place = parent.firstChild;
    for (const child of children) {
        const key = child.attributes?.key;
        let node = key === undefined ? place : keyed.get(key);
        if (!node || !fits(node, child))
            node = create(child, isSvg || child.tag === "svg");
        if (node === place)
            place = place.nextSibling;
        else
            parent.insertBefore(node, place);
        update(node, child, isSvg);
    }
    while (place) {
        const next = place.nextSibling;
        place.remove();
        place = next;
    }
}

function update(node, child, isSvg) {
    if (typeof child !== "object") {
        if (node.data !== String(child))
            node.data = String(child);
        return;
    }
    const before = node.drawn ?? {}, now = child.attributes;
    node.key = now.key;
    reconcile(node, child.children, isSvg || child.tag === "svg"); // first: a select's value needs its options
    for (const name of Object.keys(before)) {
        if (!(name in now))
            set(node, name, null);
    }
    for (const name of Object.keys(now)) {
        if (name === "style")
            setStyle(node, now.style);
        else if (PROPERTIES.has(name) || now[name] !== before[name])
            set(node, name, now[name]);
    }
    node.drawn = now;
}

function set(node, name, value) {
    if (name === "key")
        return;
    if (name.startsWith("on"))
        node[name] = value;
    else if (PROPERTIES.has(name)) {
        if (node[name] !== value)
            node[name] = value ?? "";
    } else if (value == null || value === false)
        node.removeAttribute(name);
    else
        node.setAttribute(name, value === true ? "" : value);
}

// The security policy forbids style attributes, but not the object model.
function setStyle(node, style) {
    for (const [name, value] of Object.entries(style)) {
        if (node.style.getPropertyValue(name) !== value)
            node.style.setProperty(name, value);
    }
}

// Calls work() at once, but not again before `pause` ms (or what it returns) are over and the call has ended; what comes in between becomes one call.
// now() does not wait for the pause, stop() ends it all.
export function coalesce(work, pause) {
    let timer = null, running = false, wanted = false, urgent = false, stopped = false;
    async function run() {
        running = true;
        wanted = urgent = false;
        await work().catch((error) => console.error(error));
        running = false;
        timer = setTimeout(() => {
            timer = null;
            if (wanted && !stopped)
                run();
        }, urgent ? 0 : typeof pause === "function" ? pause() : pause);
    }
    const ask = () => {
        wanted = true;
        if (timer === null && !running && !stopped)
            run();
    };
    ask.now = () => {
        clearTimeout(timer);
        timer = null;
        urgent = true;
        ask();
    };
    ask.stop = () => {
        stopped = true;
        clearTimeout(timer);
    };
    return ask;
}
