// A treegrid of any length: only rows in sight have elements, which are used again.
import { aborted, h, onFrame, report, say } from './core.js';
import { t } from './strings.js';

const { floor, max, min } = Math;
const PAGE = 200;
const ROW = 26;
const TALLEST = 12_000_000;  // beyond it, where browsers would end, the scrollbar is scaled

/** The rows below one path. Open children lie at their places among the rows, in order. */
class Branch {
  constructor(path, level) {
    this.path = path;
    this.level = level;
    this.total = 0;
    /** @type {Map<number, Item[] | null>} null: on its way */
    this.pages = new Map();
    /** @type {{at: number, branch: Branch}[]} */
    this.open = [];
  }

  /** @returns {number} */
  get size() {
    return this.open.reduce((sum, { branch }) => sum + branch.size, this.total);
  }

  item(at) {
    return this.pages.get(floor(at / PAGE))?.[at % PAGE];
  }
}

export class Grid {
  /** @param {GridOptions} options */
  constructor(options) {
    this.options = options;
    this.root = new Branch('', 1);
    this.active = 0;
    this.chosen = '';
    this.stop = new AbortController();
    this.typed = '';
    this.typedAt = 0;
    /** @type {HTMLElement[]} */
    this.pool = [];
    this.ready = false;
    this.spacer = h('div', { class: 'spacer', role: 'presentation' });
    this.head = h('div', { class: 'row head', role: 'row', 'aria-rowindex': 1 }, options.columns.map((column) => this.#headCell(column)));
    this.body = h('div', { class: 'rows', role: 'rowgroup', scroll: onFrame(() => this.#draw()) }, this.spacer);
    this.element = h('div', { class: 'grid', role: options.tree === false ? 'grid' : 'treegrid', 'aria-label': options.label, 'aria-readonly': 'true', tabIndex: 0,
      keydown: (event) => this.#key(event), focus: () => this.#focusActive() },
    h('div', { role: 'rowgroup' }, this.head), this.body);
    this.draw = onFrame(() => this.#draw());
    new ResizeObserver(() => this.draw()).observe(this.body);
  }

  #headCell(column) {
    const { sort } = column;
    const cell = h('div', { class: `cell ${column.key}${column.numeric ? ' n' : ''}`, role: 'columnheader' });
    if (!sort || !this.options.sort) cell.textContent = column.label;
    else cell.append(h('button', { type: 'button', tabIndex: -1, click: () => { this.options.sort?.(sort); this.markSort(); } }, column.label));
    cell.dataset.sort = sort ?? '';
    return cell;
  }

  markSort() {
    const sorted = this.options.sorted?.();
    for (const cell of /** @type {HTMLCollectionOf<HTMLElement>} */ (this.head.children)) {
      if (cell.dataset.sort && cell.dataset.sort === sorted) cell.setAttribute('aria-sort', sorted === 'name' ? 'ascending' : 'descending');
      else cell.removeAttribute('aria-sort');
    }
  }

  async reset() {
    this.stop.abort();
    this.stop = new AbortController();
    const root = new Branch('', 1);
    try {
      await this.#fetch(root, 0);
    } catch (error) {
      if (!aborted(error)) this.#failed(error);
      return;
    }
    this.root = root;
    this.active = 0;
    this.ready = true;
    this.body.scrollTop = 0;
    this.markSort();
    this.#draw();
  }

  #failed(error) {
    if (this.options.failed) this.options.failed(error);
    else report(error);
  }

  async #fetch(branch, page) {
    branch.pages.set(page, null);
    try {
      const { total, rows } = await this.options.load(branch.path, page * PAGE, PAGE, this.stop.signal);
      branch.total = total;
      branch.pages.set(page, rows);
    } catch (error) {
      branch.pages.delete(page);
      throw error;
    }
  }

  get size() {
    return this.root.size;
  }

  /** Which row of which branch stands at a line.
   * @param {number} line @returns {{branch: Branch, at: number}} */
  #find(line) {
    let branch = this.root;
    for (;;) {
      let before = 0;  // lines of open children above
      /** @type {Branch | null} */
      let inside = null;
      for (const child of branch.open) {
        const first = child.at + before + 1;
        if (line < first) break;
        if (line < first + child.branch.size) {
          line -= first;
          inside = child.branch;
          break;
        }
        before += child.branch.size;
      }
      if (!inside) return { branch, at: line - before };
      branch = inside;
    }
  }

  /** @param {Branch} wanted @returns {number} the line of the row that opened it, or -1 */
  #lineOf(wanted) {
    const search = (branch, start) => {
      let before = 0;
      for (const child of branch.open) {
        const line = start + child.at + before;
        if (child.branch === wanted) return line;
        const deeper = /** @type {number} */ (search(child.branch, line + 1));
        if (deeper >= 0) return deeper;
        before += child.branch.size;
      }
      return -1;
    };
    return search(this.root, 0);
  }

  async toggle(line, wanted) {
    const { branch, at } = this.#find(line);
    const item = branch.item(at);
    if (!item?.parent) return;
    const where = branch.open.findIndex((child) => child.at === at);
    const isOpen = where >= 0;
    if (wanted === isOpen) return;
    if (isOpen) {
      branch.open.splice(where, 1);
    } else {
      const child = new Branch(item.path, branch.level + 1);
      try {
        await this.#fetch(child, 0);
      } catch (error) {
        if (!aborted(error)) this.#failed(error);
        return;
      }
      if (branch.open.some((other) => other.at === at)) return;
      branch.open.push({ at, branch: child });
      branch.open.sort((a, b) => a.at - b.at);
    }
    this.#draw();
  }

  /** Opens groups from the top while all fit the window. */
  async unfold() {
    for (let line = 0, steps = 0; line < this.size && steps < 24; ++line) {
      const { branch, at } = this.#find(line);
      const item = branch.item(at);
      if (!item?.parent || branch.level > 3 || (item.data.count > 1 && !item.path.endsWith('#'))) continue;
      if (this.size > 30 && branch.level > 1) break;
      ++steps;
      await this.toggle(line, true);
      if (this.size > 400) break;
    }
  }

  async reveal(paths) {
    for (const path of paths) {
      for (let line = 0; line < this.size; ++line) {
        const { branch, at } = this.#find(line);
        if (branch.item(at)?.path === path) await this.toggle(line, true);
      }
      this.choose(path);
    }
  }

  get #scale() {
    const full = this.size * ROW;
    return full > TALLEST ? TALLEST / full : 1;
  }

  #draw() {
    const { size } = this;
    const scale = this.#scale;
    const height = this.body.clientHeight;
    this.element.setAttribute('aria-rowcount', String(size + 1));
    this.spacer.style.height = `${min(size * ROW, TALLEST)}px`;
    this.element.classList.toggle('empty', this.ready && size === 0);
    if (this.ready && size === 0) this.spacer.dataset.empty = this.options.empty ?? t('nothing');
    const top = this.body.scrollTop;
    const from = scale === 1 ? floor(top / ROW) : Math.round((top / max(1, TALLEST - height)) * max(0, size - height / ROW));
    const first = max(0, from - 4);
    const last = min(size, from + Math.ceil(height / ROW) + 5);
    while (this.pool.length < last - first) this.pool.push(this.#newRow());
    const used = new Set();
    for (let line = first; line < last; ++line) {
      const row = this.pool[line % this.pool.length];
      used.add(row);
      this.#fill(row, line);
      row.style.transform = `translateY(${scale === 1 ? line * ROW : top + (line - from) * ROW}px)`;
    }
    for (const row of this.pool) {
      if (used.has(row)) continue;
      if (row === document.activeElement) this.element.focus({ preventScroll: true });
      row.hidden = true;
    }
    const shown = this.active >= first && this.active < last;
    this.element.tabIndex = shown ? -1 : 0;
  }

  #newRow() {
    const row = h('div', { class: 'row', role: 'row', tabIndex: -1,
      click: (event) => this.#click(row, event),
      dblclick: () => this.toggle(Number(row.dataset.line)) },
    this.options.columns.map((column) => h('div', { class: `cell ${column.key}${column.numeric ? ' n' : ''}`, role: 'gridcell' })));
    this.body.append(row);
    return row;
  }

  #fill(row, line) {
    const { branch, at } = this.#find(line);
    const item = branch.item(at);
    row.hidden = false;
    if (!item) this.#want(branch, floor(at / PAGE));
    row.dataset.line = String(line);
    const tell = (what, value) => row.setAttribute(`aria-${what}`, String(value));
    tell('rowindex', line + 2);
    tell('selected', !!item && item.path === this.chosen);
    if (this.options.tree !== false) {
      tell('level', branch.level);
      tell('posinset', at + 1);
      tell('setsize', branch.total);
      if (item?.parent) tell('expanded', branch.open.some((child) => child.at === at));
      else row.removeAttribute('aria-expanded');
    }
    row.tabIndex = line === this.active ? 0 : -1;
    this.options.columns.forEach((column, i) => {
      const cell = /** @type {HTMLElement} */ (row.children[i]);
      if (!item) cell.textContent = i ? '' : '…';
      else if (column.text) cell.title = cell.textContent = column.text(item.data);
      else column.fill?.(cell, item.data, branch.level);
    });
    const first = /** @type {HTMLElement} */ (row.firstElementChild);
    first.style.paddingInlineStart = this.options.tree === false ? '' : `${4 + (branch.level - 1) * 14}px`;
  }

  #want(branch, page) {
    if (branch.pages.has(page)) return;
    this.#fetch(branch, page).then(() => this.draw(), (error) => { if (!aborted(error)) this.#failed(error); });
  }

  #click(row, event) {
    const line = Number(row.dataset.line);
    const { branch, at } = this.#find(line);
    const item = branch.item(at);
    this.active = line;
    row.focus({ preventScroll: true });
    this.draw();
    if (!item) return;
    const onTwisty = event.target instanceof Element && event.target.closest('.twisty');
    if (item.parent && (onTwisty || !event.ctrlKey)) this.toggle(line);
    if (!onTwisty) this.#open(item);
  }

  #open(item) {
    this.choose(item.path);
    this.options.open(item);
  }

  choose(path) {
    this.chosen = path;
    this.draw();
  }

  #focusActive() {
    const row = this.pool.find((each) => !each.hidden && Number(each.dataset.line) === this.active);
    if (row) row.focus({ preventScroll: true });
  }

  moveTo(line) {
    if (!this.size) return;
    this.active = max(0, min(this.size - 1, line));
    const height = this.body.clientHeight;
    const top = this.active * ROW;
    if (this.#scale !== 1) this.body.scrollTop = (this.active / max(1, this.size - height / ROW)) * (TALLEST - height);
    else if (top < this.body.scrollTop) this.body.scrollTop = top;
    else if (top + ROW > this.body.scrollTop + height) this.body.scrollTop = top + ROW - height;
    this.#draw();
    this.#focusActive();
  }

  #key(event) {
    if (event.target instanceof HTMLButtonElement && (event.key === 'Enter' || event.key === ' ')) return;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { branch, at } = this.#find(this.active);
    const item = branch.item(at);
    const isOpen = branch.open.some((child) => child.at === at);
    const page = max(1, floor(this.body.clientHeight / ROW) - 1);
    /** @type {Record<string, () => void>} */
    const moves = {
      ArrowDown: () => this.moveTo(this.active + 1),
      ArrowUp: () => this.moveTo(this.active - 1),
      PageDown: () => this.moveTo(this.active + page),
      PageUp: () => this.moveTo(this.active - page),
      Home: () => this.moveTo(0),
      End: () => this.moveTo(this.size - 1),
      ArrowRight: () => { if (isOpen) this.moveTo(this.active + 1); else this.toggle(this.active, true); },
      ArrowLeft: () => { if (isOpen) this.toggle(this.active, false); else if (branch !== this.root) this.moveTo(this.#lineOf(branch)); },
      Enter: () => { if (item) this.#open(item); },
      ' ': () => { if (item?.parent) this.toggle(this.active); else if (item) this.#open(item); },
    };
    if (event.key in moves) moves[event.key]();
    else if (event.key.length === 1 && this.options.name && !'/?'.includes(event.key) && !(this.typed === '' && /\d/.test(event.key))) this.#typeAhead(event.key);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #typeAhead(key) {
    const now = performance.now();
    this.typed = now - this.typedAt > 1000 ? key : this.typed + key;
    this.typedAt = now;
    const name = /** @type {(data: any) => string} */ (this.options.name);
    const { size } = this;
    for (let step = this.typed.length === 1 ? 1 : 0; step < min(size, 5000); ++step) {
      const line = (this.active + step) % size;
      const { branch, at } = this.#find(line);
      const item = branch.item(at);
      if (item && name(item.data).toLowerCase().startsWith(this.typed.toLowerCase())) return this.moveTo(line);
    }
    say(t('noMatch', this.typed));
  }
}

/** Of a long name, the end is what tells it from the others: where `cuts`, it stays in sight. */
export function nameCell(cell, parent, text, after = '', cuts = false) {
  const cut = cuts && text.length > 24 ? text.search(/[^.]*\.[^.]*$|\d+(\.\D[^.]*)*$/) : 0;
  cell.classList.toggle('split', cut > 0);
  if (cell.childElementCount !== 3) cell.replaceChildren(h('span', { class: 'twisty', 'aria-hidden': 'true' }), h('span', { class: 'label' }), h('span', { class: 'after' }));
  const [twisty, label, tail] = /** @type {HTMLCollectionOf<HTMLElement>} */ (cell.children);
  twisty.classList.toggle('leaf', !parent);
  label.textContent = cut > 0 ? text.slice(0, cut) : text;
  cell.title = text;
  tail.textContent = cut > 0 ? text.slice(cut) : after;
}
