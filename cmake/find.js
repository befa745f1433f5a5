// SPDX-License-Identifier: Apache-2.0
// The search of the documents (doxygen_find.py writes SECTIONS): sections that have all words, those with the words in their headings first.
'use strict';
const field = document.getElementById('find');
const list = document.getElementById('found');
const count = document.getElementById('count');
const MOST = 40;

for (const one of SECTIONS) {
  one.top = one.heading.toLowerCase();
  one.head = `${one.page.toLowerCase()} ${one.top}`;
  one.body = one.text.toLowerCase();
}

// Higher is better; 0: a word is missing. Sections in another language than the words stand behind all others, and what is history behind what is so.
function worth(one, words, chinese) {
  let sum = one.chinese === chinese ? 1000 : 100;
  if (/^(changelog|docs_decisions|docs_performance)_/.test(one.url)) sum -= 90;
  for (const word of words) {
    if (one.top.includes(word)) sum += 100;
    else if (one.head.includes(word)) sum += 40;
    else if (!one.body.includes(word)) return 0;
    if (one.body.includes(word)) sum += Math.min(9, one.body.split(word).length - 1);
  }
  return sum;
}

function excerpt(one, words) {
  const first = Math.min(...words.map((word) => one.body.indexOf(word)).map((at) => (at < 0 ? one.body.length : at)));
  const from = first === one.body.length ? 0 : Math.max(0, first - 60);
  return (from > 0 ? '… ' : '') + one.text.slice(from, from + 200) + (from + 200 < one.text.length ? ' …' : '');
}

function shown(one, words) {
  const item = document.createElement('li');
  const link = document.createElement('a');
  link.href = one.url;
  link.textContent = one.heading ? `${one.page}: ${one.heading}` : one.page;
  const text = document.createElement('div');
  text.textContent = excerpt(one, words);
  item.append(link, text);
  return item;
}

function find() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const chinese = /[\u4e00-\u9fff]/.test(field.value);
  const ranked = words.length === 0 ? [] : SECTIONS.map((one) => [worth(one, words, chinese), one]).filter(([value]) => value > 0);
  ranked.sort((a, b) => b[0] - a[0]);
  list.replaceChildren(...ranked.slice(0, MOST).map(([, one]) => shown(one, words)));
  count.textContent = words.length === 0 ? '' : `${ranked.length} section${ranked.length === 1 ? '' : 's'}${ranked.length > MOST ? `, the best ${MOST} shown` : ''}`;
  history.replaceState(null, '', words.length === 0 ? location.pathname : `#${encodeURIComponent(field.value)}`);
}

field.addEventListener('input', find);
field.value = decodeURIComponent(location.hash.slice(1));
find();
field.focus();
