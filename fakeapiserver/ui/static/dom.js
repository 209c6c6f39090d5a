// Elements, formats and a virtual list. Values always become text or attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

// Makes an element. Properties: `class`, `on` ({event: listener}), `style` and `data` (objects), anything else an attribute;
// true is an empty attribute, false, null and undefined leave it out. Children: nodes, texts, arrays of them; null is nothing.
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

// As `h`, for SVG.
export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") {
      for (const [key, each] of Object.entries(value)) {
        if (key.startsWith("--")) element.style.setProperty(key, each);
        else element.style[key] = each;
      }
    } else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

export function text(value) {
  return document.createTextNode(value === null || value === undefined ? "" : String(value));
}

// Removes the children and appends others.
export function clear(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

// Listens, and returns the function that ends it.
export function on(target, event, listener, options) {
  target.addEventListener(event, listener, options);
  return () => target.removeEventListener(event, listener, options);
}

// Runs `work` once in the next frame, however often it is asked for. `.cancel()` forgets it.
export function inNextFrame(work) {
  let frame = 0;
  const ask = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      work();
    });
  };
  ask.cancel = () => {
    cancelAnimationFrame(frame);
    frame = 0;
  };
  return ask;
}

// An age as kubectl prints it: 45s, 12m, 3h20m, 5d.
export function ago(seconds) {
  const all = Math.max(0, Math.floor(seconds));
  const [minutes, hours, days] = [Math.floor(all / 60), Math.floor(all / 3600), Math.floor(all / 86400)];
  if (all < 120) return `${all}s`;
  if (minutes < 10) return all % 60 ? `${minutes}m${all % 60}s` : `${minutes}m`;
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return minutes % 60 ? `${hours}h${minutes % 60}m` : `${hours}h`;
  if (hours < 48) return `${hours}h`;
  if (days < 8) return hours % 24 ? `${days}d${hours % 24}h` : `${days}d`;
  return days < 730 ? `${days}d` : `${Math.floor(days / 365)}y`;
}

// The cluster's time of day in UTC, with milliseconds unless `whole`: 14:03:07.250.
export function clockTime(time, whole = false) {
  const date = new Date(time * 1000);
  if (Number.isNaN(date.getTime())) return "";
  return date.toISOString().slice(11, whole ? 19 : 23);
}

// The cluster's date and time in UTC: 2026-05-04 14:03:07.
export function dateTime(time) {
  const date = new Date(time * 1000);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 19).replace("T", " ");
}

// A duration: 850 µs, 12 ms, 1.25 s, 4m10s.
export function duration(seconds) {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${Number((seconds * 1000).toPrecision(3))} ms`;
  if (seconds < 120) return `${Number(seconds.toPrecision(3))} s`;
  return ago(seconds);
}

export function bytes(n) {
  if (n < 1024) return `${n} B`;
  const [value, unit] = n < 1024 * 1024 ? [n / 1024, "KiB"] : [n / 1024 / 1024, "MiB"];
  return `${Number(value.toPrecision(3))} ${unit}`;
}

// A number with its noun: 1 request, 1,200 requests.
export function counted(n, noun) {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}

// A list of `count` rows of one height in `container`, of which only the visible ones exist. render(index) makes a row.
// Returns { update(count), reveal(index), destroy() }.
export function rows(container, count, rowHeight, render) {
  const filler = h("div", { class: "rows" });
  let number = count;
  const draw = () => {
    const first = Math.max(0, Math.floor(container.scrollTop / rowHeight) - 8);
    const last = Math.min(number, Math.ceil((container.scrollTop + container.clientHeight) / rowHeight) + 8);
    filler.style.height = `${number * rowHeight}px`;
    const shown = [];
    for (let index = first; index < last; index += 1) {
      const row = render(index);
      row.style.position = "absolute";
      row.style.insetInline = "0";
      row.style.top = `${index * rowHeight}px`;
      row.style.height = `${rowHeight}px`;
      shown.push(row);
    }
    filler.replaceChildren(...shown);
  };
  const later = inNextFrame(draw);
  filler.style.position = "relative";
  container.append(filler);
  const endings = [on(container, "scroll", later, { passive: true })];
  const observer = new ResizeObserver(later);
  observer.observe(container);
  draw();
  return {
    update(newCount) {
      number = newCount;
      draw();
    },
    reveal(index) {
      const top = index * rowHeight;
      if (top < container.scrollTop) container.scrollTop = top;
      else if (top + rowHeight > container.scrollTop + container.clientHeight) {
        container.scrollTop = top + rowHeight - container.clientHeight;
      }
      draw();
    },
    destroy() {
      later.cancel();
      observer.disconnect();
      endings.forEach((end) => end());
      filler.remove();
    },
  };
}
