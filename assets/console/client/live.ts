import { addRows, isInUse } from './rows.ts'
import { localise } from './times.ts'

declare global {
  interface Window { htmx?: { process: (element: Element) => void } }
}

/** Time until a refused stream is requested again, in ms. */
const retryDelay = 5_000

/**
 * Follows the event stream of the page: reloads the changed parts when data changed, and shows when the connection is
 * lost. Reconnects by itself, then fetches what changed meanwhile.
 * @param url the address of the stream
 */
export function followStream (url: string): void {
  for (const part of document.querySelectorAll('[data-live][id]')) sources.set(part, part.outerHTML)
  let source: EventSource
  let isMissingNews = false
  const connect = (): void => {
    source = new EventSource(url)
    source.addEventListener('hello', () => {
      showCutOff(false)
      if (isMissingNews) void refresh()
      isMissingNews = false
    })
    source.addEventListener('changed', () => { void refresh() })
    source.addEventListener('ended', () => { location.reload() })
    source.addEventListener('error', () => {
      isMissingNews = true
      showCutOff(true)
      // The browser does not retry a refused stream, for example when a proxy refuses it while the gateway starts.
      if (source.readyState === EventSource.CLOSED) setTimeout(retry, retryDelay)
    })
  }
  const retry = (): void => { void refresh().then(connect) }
  connect()
  // Signing out leads to the login page: the end of the stream must not reload this page.
  document.querySelector('form.who')?.addEventListener('submit', () => { source.close() })
  // A page in the back-forward cache would keep its connection open.
  addEventListener('pagehide', () => { source.close() })
  addEventListener('pageshow', ({ persisted }) => { if (persisted) location.reload() })
}

function showCutOff (isCutOff: boolean): void {
  const banner = document.querySelector<HTMLElement>('#cut-off')
  if (banner) banner.hidden = !isCutOff
}

/**
 * The HTML of each part as the server sent it. An unchanged part is not replaced, so that a selection in it is kept.
 */
const sources = new WeakMap<Element, string>()

let running: Promise<void> | undefined
let isAskedAgain = false

/** Runs one request at a time. Changes during a request cause one more request after it. */
async function refresh (): Promise<void> {
  if (running) {
    isAskedAgain = true
    return
  }
  running = replaceParts().catch(() => {})
  await running
  running = undefined
  if (isAskedAgain) {
    isAskedAgain = false
    await refresh()
  }
}

/** Replaces each element that has an id and `data-live` by the element with the same id in the current page. */
async function replaceParts (): Promise<void> {
  const asked = location.href
  const response = await fetch(asked, { headers: { 'x-console-refresh': '1' } })
  // The session has ended, or the shown object no longer exists: the reloaded page says so.
  if (response.redirected || [401, 404].includes(response.status)) location.reload()
  showCutOff(!response.ok)
  if (!response.ok) return
  const page = new DOMParser().parseFromString(await response.text(), 'text/html')
  // A search may have changed the address during the request.
  if (location.href !== asked) return
  for (const next of page.querySelectorAll('[data-live][id]')) {
    // In a form with a field named `id`, the property `id` is that field; so the attribute is read.
    const shown = document.getElementById(next.getAttribute('id') ?? '')
    const html = next.outerHTML
    if (shown === null || sources.get(shown) === html) continue
    const [rows, nextRows] = [shown.querySelector('[data-rows]'), next.querySelector('[data-rows]')]
    if (rows && nextRows) {
      for (const fresh of addRows(rows, nextRows)) localise(fresh)
      continue
    }
    if (isInUse(shown)) continue
    const focused = shown.contains(document.activeElement) ? document.activeElement?.id : undefined
    const fresh = document.importNode(next, true)
    shown.replaceWith(fresh)
    sources.set(fresh, html)
    localise(fresh)
    window.htmx?.process(fresh)
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true })
  }
}
