// What the browser is asked of a page: run there, not here.
/* global document, window, NodeFilter, getComputedStyle */

const widget = () => document.querySelector('.lambda-lease');

/** Every element's name, and every attribute with its value. */
window.markup = () => {
  const elements = [...document.querySelectorAll('#widget *')];
  return {
    names: [...new Set(elements.map(({ localName }) => localName))].sort(),
    attributes: [...new Set(elements.flatMap((element) => element.getAttributeNames()))].sort(),
    links: elements.flatMap((element) => element.getAttribute('href') ?? []),
  };
};

window.textsOf = (selector) => [...document.querySelectorAll(selector)].map((e) => e.textContent);

/** What sticks out of the widget, and what of a text is cut off. */
window.overflowing = () => {
  const frame = document.getElementById('widget').getBoundingClientRect();
  const outside = [...widget().querySelectorAll('*')].filter((element) => {
    const { left, right, width } = element.getBoundingClientRect();
    return width > 0 && (right > frame.right + 0.5 || left < frame.left - 0.5);
  });
  const page = document.scrollingElement;
  return {
    outside: outside.map((element) => `${element.localName} ${element.className}`),
    pageBy: page.scrollWidth - page.clientWidth,
  };
};

/** Cells of one row that cover each other. */
window.overlapping = () => {
  const found = [];
  for (const row of document.querySelectorAll('#widget tr')) {
    const boxes = [...row.children].map((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return { cell, lines: [...range.getClientRects()].filter(({ width }) => width > 0) };
    });
    for (const [i, a] of boxes.entries()) {
      for (const b of boxes.slice(i + 1)) {
        const meet = a.lines.some((one) =>
          b.lines.some(
            (other) =>
              one.left < other.right - 1 &&
              other.left < one.right - 1 &&
              one.top < other.bottom - 1 &&
              other.top < one.bottom - 1,
          ),
        );
        if (meet) found.push(`${a.cell.textContent} over ${b.cell.textContent}`);
      }
    }
  }
  return found;
};

/** The order of the cells of the first row, from left to right. */
window.cellOrder = () =>
  [...document.querySelectorAll('#widget tbody tr')].map((row) =>
    [...row.children].map((cell) => Math.round(cell.getBoundingClientRect().left)),
  );

/** WCAG's contrast of every text with what lies behind it: the lowest, by what it is. */
window.contrasts = () => {
  const lowest = {};
  const note = (element, color, label) => {
    const ratio = contrast(color, behind(element));
    lowest[label] = Math.min(lowest[label] ?? Infinity, ratio);
  };
  const walker = document.createTreeWalker(widget(), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (walker.currentNode.data.trim() === '' || element.getClientRects().length === 0) continue;
    note(element, getComputedStyle(element).color, `${element.localName}.${element.className}`);
  }
  for (const element of widget().querySelectorAll('[data-label]')) {
    const before = getComputedStyle(element, '::before');
    if (before.content !== 'none') note(element, before.color, 'label');
  }
  return lowest;
};

function behind(element) {
  for (let at = element; at !== null; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if (color !== 'rgba(0, 0, 0, 0)') return color;
  }
  return 'rgb(255, 255, 255)';
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color) {
  const parts = color.match(/[\d.]+/g).map(Number);
  if (parts.length > 3 && parts[3] !== 1) throw new Error(`No contrast for ${color}`);
  const [r, g, b] = parts.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** As CloudWatch does: a click on what is before a cwdb-action calls the function with its text. */
document.addEventListener('click', (event) => {
  const action = event.target.closest('a')?.nextElementSibling;
  if (action?.localName !== 'cwdb-action') return;
  event.preventDefault();
  const {
    display,
    endpoint,
    action: what,
  } = Object.fromEntries([...action.attributes].map(({ name, value }) => [name, value]));
  if (what !== 'call' || display !== 'widget') throw new Error(`No action: ${action.outerHTML}`);
  void window.callFunction(endpoint, JSON.parse(action.textContent)).then((html) => {
    document.getElementById('widget').innerHTML = html;
  });
});
