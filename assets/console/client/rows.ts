/** Max number of rows: a list that shows more rows is not updated while it is being read. */
const maxRows = 500

/** Returns the rows of a list, by their keys (`data-row`). */
const rowsOf = (list: Element): Map<string, HTMLElement> =>
  new Map([...list.querySelectorAll<HTMLElement>(':scope > [data-row]')].map((row) => [row.dataset.row ?? '', row]))

/**
 * Updates a list whose newest rows come first: new rows are added and marked, and rows that the new list lacks are
 * removed unless they are being read. While the list is being read, an anchor row keeps its place on the screen: a row
 * with links or inputs under the pointer or with the focus or, if the list is scrolled, the first visible row.
 * @param next the same list in the page that was just received
 * @returns the added rows
 */
export function updateRows (list: Element, next: Element): HTMLElement[] {
  const [shown, coming] = [rowsOf(list), rowsOf(next)]
  const scroller = scrollerOf(list)
  const anchor = anchorOf(list, topOf(scroller))
  const hasCommonRow = [...coming.keys()].some((key) => shown.has(key))
  // Without a common row, the lists would have a gap between them.
  if (anchor && (shown.size > maxRows || !hasCommonRow)) return []
  const top = anchor?.getBoundingClientRect().top
  const added: HTMLElement[] = []
  let place = list.firstElementChild
  for (const [key, row] of coming) {
    const existing = shown.get(key)
    if (existing) {
      place = existing.nextElementSibling
      continue
    }
    const fresh = document.importNode(row, true)
    fresh.classList.add('new')
    list.insertBefore(fresh, place)
    added.push(fresh)
  }
  if (anchor && top !== undefined) scroller.scrollTop += anchor.getBoundingClientRect().top - top
  for (const [key, row] of shown) {
    if (!coming.has(key) && !(anchor && startsAboveEnd(row, scroller)) && !isInUse(row)) row.remove()
  }
  return added
}

/** Whether a part is in use: a field has the focus, an element is checked or open, or a request is in progress. */
export const isInUse = (part: Element): boolean =>
  part.matches('.htmx-request') ||
  part.querySelector('input:checked, details[open], .htmx-request') !== null ||
  (part.contains(document.activeElement) && document.activeElement?.matches('input, textarea, select') === true)

/** Returns the element with which a list scrolls: an enclosing box with a scrollbar, or else the page. */
function scrollerOf (list: Element): Element {
  const page = document.scrollingElement ?? document.documentElement
  for (let part = list.parentElement; part && part !== page; part = part.parentElement) {
    if (part.scrollHeight > part.clientHeight && /auto|scroll/.test(getComputedStyle(part).overflowY)) return part
  }
  return page
}

const isPage = (scroller: Element): boolean => scroller === document.scrollingElement
// Top and bottom of the visible area of a scrolling element, in px from the top of the window.
const topOf = (scroller: Element): number => isPage(scroller) ? 0 : scroller.getBoundingClientRect().top
const endOf = (scroller: Element): number => isPage(scroller) ? innerHeight : scroller.getBoundingClientRect().bottom
/** Whether a row is in or above the visible area, so that removing it would move or hide what is being read. */
const startsAboveEnd = (row: Element, scroller: Element): boolean => row.getBoundingClientRect().top < endOf(scroller)

/**
 * Returns the row that must keep its place on the screen; undefined if the list is not being read.
 * @param visibleFrom the top of the visible area, in px from the top of the window
 */
function anchorOf (list: Element, visibleFrom: number): Element | undefined {
  const used = list.querySelector('[data-row]:has(a, input):is(:hover, :focus-within)')
  if (used) return used
  if (list.getBoundingClientRect().top >= visibleFrom) return undefined
  return [...rowsOf(list).values()].find((row) => row.getBoundingClientRect().bottom > visibleFrom)
}
