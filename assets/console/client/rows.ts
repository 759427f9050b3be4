/** Number of rows beyond which a list that is being read gets no further ones. */
const maxRows = 500

/** The rows of a list by their keys. */
const rowsOf = (list: Element): Map<string, HTMLElement> =>
  new Map([...list.querySelectorAll<HTMLElement>(':scope > [data-row]')].map((row) => [row.dataset.row ?? '', row]))

/**
 * Brings a list up to date whose newest rows come first: new rows are added and marked, the others stay as they are.
 * One row stays at its place on the screen: the one under the pointer or with the focus, else the first visible row of
 * a list whose beginning is out of sight.
 * @param next the list as it is now
 * @returns the new rows
 */
export function addRows (list: Element, next: Element): HTMLElement[] {
  const [shown, coming] = [rowsOf(list), rowsOf(next)]
  const scroller = scrollerOf(list)
  const anchor = anchorOf(list, topOf(scroller))
  const isContinued = [...coming.keys()].some((key) => shown.has(key))
  if (anchor && (shown.size > maxRows || !isContinued)) return []
  const top = anchor?.getBoundingClientRect().top
  const added: HTMLElement[] = []
  let place = list.firstElementChild
  for (const [key, row] of coming) {
    const own = shown.get(key)
    if (own) {
      place = own.nextElementSibling
      continue
    }
    const fresh = document.importNode(row, true)
    fresh.classList.add('new')
    list.insertBefore(fresh, place)
    added.push(fresh)
  }
  if (anchor && top !== undefined) scroller.scrollTop += anchor.getBoundingClientRect().top - top
  for (const [key, row] of shown) {
    if (!coming.has(key) && !(anchor && isAbove(row, scroller)) && !isInUse(row)) row.remove()
  }
  return added
}

/** Somebody types in it, has chosen something in it, or waits for what it sent. */
export const isInUse = (part: Element): boolean =>
  part.matches('.htmx-request') ||
  part.querySelector('input:checked, details[open], .htmx-request') !== null ||
  (part.contains(document.activeElement) && document.activeElement?.matches('input, textarea, select') === true)

/** The element that scrolls a list: a box with its own scrollbar, else the page. */
function scrollerOf (list: Element): Element {
  const page = document.scrollingElement ?? document.documentElement
  for (let part = list.parentElement; part && part !== page; part = part.parentElement) {
    if (part.scrollHeight > part.clientHeight && /auto|scroll/.test(getComputedStyle(part).overflowY)) return part
  }
  return page
}

const isPage = (scroller: Element): boolean => scroller === document.scrollingElement
/** Where the visible part of what an element scrolls begins and ends, in px below the top of the window. */
const topOf = (scroller: Element): number => isPage(scroller) ? 0 : scroller.getBoundingClientRect().top
const endOf = (scroller: Element): number => isPage(scroller) ? innerHeight : scroller.getBoundingClientRect().bottom
const isAbove = (row: Element, scroller: Element): boolean => row.getBoundingClientRect().top < endOf(scroller)

function anchorOf (list: Element, visibleFrom: number): Element | undefined {
  const used = list.querySelector('[data-row]:has(a, input):is(:hover, :focus-within)')
  if (used) return used
  if (list.getBoundingClientRect().top >= visibleFrom) return undefined
  return [...rowsOf(list).values()].find((row) => row.getBoundingClientRect().bottom > visibleFrom)
}
