'use strict';
// The page is complete without this: tables become sortable and searchable, timelines can be zoomed.

// --- Tables -------------------------------------------------------------------------------------

const SEARCHED_FROM = 10;

function number(cell) {
  const raw = cell.dataset.v ?? cell.textContent.replace(/,/g, '');
  return raw === '' || Number.isNaN(Number(raw)) ? null : Number(raw);
}

function compare(a, b, column, numeric) {
  const [x, y] = [a.cells[column], b.cells[column]];
  if (!numeric) return x.textContent.localeCompare(y.textContent, 'en', { numeric: true });
  const [m, n] = [number(x), number(y)];
  // What was not measured comes last, whichever way the rest is sorted.
  if (m === null || n === null) return m === n ? 0 : m === null ? Infinity : -Infinity;
  return m - n;
}

function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  // A part stays under the row that it is a part of; totals stay at the end.
  const groups = [];
  const totals = [];
  for (const row of body.rows) {
    if (row.classList.contains('total')) totals.push(row);
    else if (row.classList.contains('part') && groups.length) groups[groups.length - 1].push(row);
    else groups.push([row]);
  }
  heads.forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'sort';
    // Over the heading and not around it: what is in a button is not repeated on the next page of paper.
    button.setAttribute('aria-label', `Sort by ${[...head.childNodes].map((part) => part.textContent).join(' ')}`);
    head.append(button);
    const numeric = head.classList.contains('n');
    button.addEventListener('click', () => {
      const before = head.getAttribute('aria-sort');
      const down = before ? before === 'ascending' : numeric;
      for (const other of heads) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const sorted = [...groups].sort((a, b) => {
        const order = compare(a[0], b[0], column, numeric);
        return Number.isFinite(order) && down ? -order : order;
      });
      body.append(...sorted.flat(), ...totals);
    });
  });
}

function searchable(table, scroll) {
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase() + ' ' + [...row.querySelectorAll('[title]')].map((cell) => cell.title.toLowerCase()).join(' '));
  const box = document.createElement('div');
  box.className = 'filter';
  const label = document.createElement('label');
  label.textContent = 'Find ';
  const input = document.createElement('input');
  input.type = 'search';
  input.setAttribute('aria-label', `Find in: ${document.getElementById(table.getAttribute('aria-labelledby')).textContent}`);
  input.setAttribute('aria-controls', table.id);
  label.append(input);
  const found = document.createElement('output');
  const all = `${rows.length.toLocaleString('en-US')} rows`;
  found.textContent = all;
  box.append(label, found);
  scroll.before(box);
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, place) => {
      const fits = words.every((word) => texts[place].includes(word));
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    found.textContent = words.length ? `${shown.toLocaleString('en-US')} of ${all}` : all;
  });
}

for (const scroll of document.querySelectorAll('.scroll')) {
  const table = scroll.querySelector('table');
  const rows = table.tBodies[0].rows.length;
  if (rows > 1) sortable(table);
  if (rows >= SEARCHED_FROM) searchable(table, scroll);
}

// --- Timelines ----------------------------------------------------------------------------------

// As the tables spell times: milliseconds with three decimals, and a zero is exact.
function ms(ns) {
  if (ns === 0) return '0';
  if (Math.abs(ns) <= 500) return ns > 0 ? '<0.001' : '>-0.001';
  const size = Math.abs(ns);
  let micros = Math.floor(size / 1000);
  const rest = size % 1000;
  if (rest > 500 || (rest === 500 && micros % 2 === 1)) micros += 1;
  const whole = Math.floor(micros / 1000).toLocaleString('en-US');
  return `${ns < 0 ? '-' : ''}${whole}.${String(micros % 1000).padStart(3, '0')}`;
}

function grouped(number, digits) {
  return number.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const STRIP = 22;
const GAP = 16;
const AXIS = 22;

class TimelineView {
  constructor(figure) {
    const { chart, colours } = JSON.parse(document.getElementById(figure.dataset.timeline).textContent);
    this.chart = chart;
    this.colours = colours;
    this.end = Math.max(chart.end_ns, 1);
    this.from = 0;
    this.to = this.end;
    this.build(figure);
    this.resize();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
  }

  build(figure) {
    const moving = document.createElement('div');
    moving.className = 'moving';
    const controls = document.createElement('div');
    controls.className = 'controls';
    const title = document.createElement('strong');
    title.textContent = this.chart.caption;
    controls.append(title);
    const button = (text, label, act) => {
      const made = document.createElement('button');
      made.type = 'button';
      made.textContent = text;
      made.setAttribute('aria-label', label);
      made.title = label;
      made.addEventListener('click', act);
      controls.append(made);
    };
    button('−', 'Zoom out', () => this.zoom(2));
    button('+', 'Zoom in', () => this.zoom(0.5));
    button('←', 'Earlier', () => this.move(-0.25));
    button('→', 'Later', () => this.move(0.25));
    button('All', 'Show all of it', () => this.show(0, this.end));
    this.addSteps(controls);
    const keys = (what, names, colours, used) => {
      const list = document.createElement('ul');
      list.className = 'keys';
      const first = document.createElement('li');
      first.className = 'what';
      first.textContent = what;
      list.append(first);
      names.forEach((name, place) => {
        if (!used.has(place)) return;
        const item = document.createElement('li');
        const swatch = document.createElement('i');
        swatch.style.background = colours[place];
        item.append(swatch, name);
        list.append(item);
      });
      return list;
    };
    const used = (field) => {
      const places = new Set();
      for (const lane of this.chart.lanes) for (const bin of lane.bins) for (let i = 0; i < bin[field].length; i += 2) places.add(bin[field][i]);
      return places;
    };
    this.canvas = document.createElement('canvas');
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'img');
    this.canvas.setAttribute('aria-label', `${this.chart.caption}. ${this.chart.about} Keys: plus and minus zoom, arrows move, 0 shows all.`);
    this.says = document.createElement('output');
    this.says.className = 'says';
    this.says.textContent = 'Drag over a part to zoom in, double-click to see all; point at something to read what it is.';
    moving.append(controls, keys('above:', this.chart.classes, this.colours.classes, used(2)), keys('below:', this.chart.buckets, this.colours.buckets, used(3)), this.canvas, this.says);
    figure.prepend(moving);
    figure.classList.add('live');
    this.listen();
  }

  addSteps(controls) {
    const lane = this.chart.lanes.find((one) => one.steps.length > 1);
    if (!lane) return;
    const select = document.createElement('select');
    select.setAttribute('aria-label', 'Show a step');
    select.append(new Option('Step…', ''));
    lane.steps.forEach(([name], place) => select.append(new Option(name.slice(0, 40), String(place))));
    select.addEventListener('change', () => {
      if (select.value === '') return;
      const [, start, length] = lane.steps[Number(select.value)];
      this.show(start - length * 0.03, start + length * 1.03);
    });
    controls.append(select);
  }

  listen() {
    const at = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    let start = null;
    this.canvas.addEventListener('pointerdown', (event) => {
      start = at(event).x;
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener('pointermove', (event) => {
      const place = at(event);
      if (start === null) return this.tell(place);
      this.draw([start, place.x]);
    });
    this.canvas.addEventListener('pointerup', (event) => {
      const { x } = at(event);
      const [a, b] = [Math.min(start, x), Math.max(start, x)];
      start = null;
      if (b - a > 4) this.show(this.time(a), this.time(b));
      else this.draw();
    });
    this.canvas.addEventListener('pointercancel', () => { start = null; this.draw(); });
    this.canvas.addEventListener('dblclick', () => this.show(0, this.end));
    this.canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.time(at(event).x));
    }, { passive: false });
    this.canvas.addEventListener('keydown', (event) => {
      const act = {
        '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2),
        ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25), 0: () => this.show(0, this.end),
      }[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
  }

  resize() {
    const width = this.canvas.clientWidth;
    if (width === 0 || width === this.width) return;
    this.width = width;
    this.names = width < 560 ? 0 : 150;
    this.lane = 2 * STRIP + GAP + (this.names ? 0 : 16);
    this.height = this.chart.lanes.length * this.lane + AXIS;
    this.canvas.style.height = `${this.height}px`;
    this.draw();
  }

  zoom(factor, around = (this.from + this.to) / 2) {
    this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  move(part) {
    const by = (this.to - this.from) * part;
    const length = this.to - this.from;
    const from = Math.min(Math.max(this.from + by, 0), this.end - length);
    this.show(from, from + length);
  }

  show(from, to) {
    this.from = Math.max(0, from);
    this.to = Math.min(this.end, Math.max(to, this.from + 20));
    if (this.to - this.from < 20) this.from = Math.max(0, this.to - 20);
    this.draw();
    this.says.textContent = `${ms(Math.round(this.from))} to ${ms(Math.round(this.to))} ms of ${ms(this.end)} ms`;
  }

  time(x) {
    return this.from + ((x - this.names) / (this.width - this.names)) * (this.to - this.from);
  }

  x(time) {
    return this.names + ((time - this.from) / (this.to - this.from)) * (this.width - this.names);
  }

  // The first bin that ends behind `time`.
  first(bins, time) {
    let [low, high] = [0, bins.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (bins[middle][0] + bins[middle][1] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  draw(selected) {
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    const pen = this.canvas.getContext('2d');
    pen.scale(scale, scale);
    const style = getComputedStyle(document.documentElement);
    const theme = (name) => style.getPropertyValue(name).trim();
    pen.font = '12px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    this.chart.lanes.forEach((lane, place) => {
      const top = place * this.lane + (this.names ? 0 : 16);
      pen.fillStyle = theme('--ink');
      pen.textAlign = this.names ? 'right' : 'left';
      const label = lane.label.length > 24 ? `${lane.label.slice(0, 23)}…` : lane.label;
      if (this.names) pen.fillText(label, this.names - 10, top + STRIP, this.names - 14);
      else pen.fillText(label, 0, top - 7, this.width);
      pen.save();
      pen.beginPath();
      pen.rect(this.names, top, this.width - this.names, 2 * STRIP + 2);
      pen.clip();
      const last = lane.bins[lane.bins.length - 1];
      if (last) {
        const [a, b] = [this.x(lane.bins[0][0]), this.x(last[0] + last[1])];
        pen.fillStyle = theme('--empty');
        pen.fillRect(a, top, Math.max(b - a, 1), 2 * STRIP + 1);
        pen.strokeStyle = theme('--faint');
        pen.strokeRect(a + 0.5, top + 0.5, Math.max(b - a - 1, 1), 2 * STRIP);
      }
      this.strip(pen, lane.bins, 2, this.colours.classes, top);
      this.strip(pen, lane.bins, 3, this.colours.buckets, top + STRIP + 1);
      pen.restore();
      pen.fillStyle = theme('--faint');
      const shown = lane.steps.filter(([, start]) => start >= this.from && start <= this.to);
      if (shown.length < 80) for (const [, start] of shown) pen.fillRect(this.x(start), top - 3, 1, 2 * STRIP + 7);
    });
    this.axis(pen, theme);
    if (selected) {
      pen.globalAlpha = 0.25;
      pen.fillStyle = theme('--link');
      pen.fillRect(Math.min(...selected), 0, Math.abs(selected[1] - selected[0]), this.height - AXIS);
      pen.globalAlpha = 1;
    }
  }

  strip(pen, bins, field, colours, top) {
    const columns = Math.max(1, Math.ceil(this.width - this.names));
    const each = (this.to - this.from) / columns;
    const narrow = new Map();
    for (let place = this.first(bins, this.from); place < bins.length; place += 1) {
      const bin = bins[place];
      if (bin[0] >= this.to) break;
      if (bin[1] >= each) {
        const [left, right] = [Math.max(this.x(bin[0]), this.names), Math.min(this.x(bin[0] + bin[1]), this.width)];
        let bottom = top + STRIP;
        for (let i = 0; i < bin[field].length; i += 2) {
          const height = (bin[field][i + 1] / bin[1]) * STRIP;
          pen.fillStyle = colours[bin[field][i]];
          pen.fillRect(left, bottom - height, Math.max(right - left, 0.5), height);
          bottom -= height;
        }
        continue;
      }
      // Several bins in one pixel: as full as they are together.
      const column = Math.floor((bin[0] - this.from) / each);
      let sums = narrow.get(column);
      if (!sums) narrow.set(column, (sums = new Float64Array(colours.length)));
      for (let i = 0; i < bin[field].length; i += 2) sums[bin[field][i]] += bin[field][i + 1];
    }
    for (const [column, sums] of narrow) {
      let bottom = top + STRIP;
      sums.forEach((time, kind) => {
        if (time === 0) return;
        const height = Math.min(time / each, 1) * STRIP;
        pen.fillStyle = colours[kind];
        pen.fillRect(this.names + column, bottom - height, 1, height);
        bottom -= height;
      });
    }
  }

  axis(pen, theme) {
    const least = (this.to - this.from) / Math.max(2, (this.width - this.names) / 110);
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= least);
    const digits = Math.max(0, -Math.floor(Math.log10(step / 1e6)));
    const y = this.height - AXIS + 12;
    pen.textAlign = 'center';
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = this.x(at);
      pen.fillStyle = theme('--line');
      pen.fillRect(x, 0, 1, this.height - AXIS + 4);
      pen.fillStyle = theme('--faint');
      if (x > this.names + 20 && x < this.width - 40) pen.fillText(grouped(at / 1e6, Math.min(digits, 6)), x, y);
    }
    pen.textAlign = 'right';
    pen.fillText('ms', this.width, y);
  }

  // What is under the pointer.
  tell({ x, y }) {
    const lane = this.chart.lanes[Math.floor(y / this.lane)];
    const time = this.time(x);
    if (!lane || x < this.names) return;
    const bin = lane.bins[this.first(lane.bins, time)];
    if (!bin || bin[0] > time) {
      this.says.textContent = `${lane.label}, at ${ms(Math.round(time))} ms: idle`;
      return;
    }
    const parts = (names, field) => {
      const told = [];
      for (let i = 0; i < bin[field].length; i += 2) told.push(`${names[bin[field][i]]} ${ms(bin[field][i + 1])}`);
      return told.join(', ');
    };
    const step = lane.steps.find(([, start, length]) => start <= time && time < start + length);
    this.says.textContent = `${lane.label}${step ? `, ${step[0]}` : ''}, from ${ms(bin[0])} for ${ms(bin[1])} ms: ${parts(this.chart.classes, 2)}; ${parts(this.chart.buckets, 3)} ms`;
  }
}

for (const figure of document.querySelectorAll('figure[data-timeline]')) {
  figure.view = new TimelineView(figure);
}
document.documentElement.dataset.ready = 'yes';
