import { updateRows, isInUse } from './rows.ts'
import { showLocalTimes } from './times.ts'

declare global {
  interface Window { htmx?: { process: (element: Element) => void } }
}

/** Delay before a refused event stream is requested again, in ms. */
const retryDelay = 5_000

/**
 * Keeps the page current with the help of an event stream: replaces the parts of the page whose data has changed, and
 * shows whether the connection is lost. After a reconnect, it fetches the changes that may have been missed.
 * @param url the URL of the event stream
 */
export function followStream (url: string): void {
  for (const part of document.querySelectorAll('[data-live][id]')) receivedHtml.set(part, part.outerHTML)
  let source: EventSource
  let mayMissChanges = false
  const connect = (): void => {
    source = new EventSource(url)
    source.addEventListener('hello', () => {
      showDisconnected(false)
      if (mayMissChanges) void refresh()
      mayMissChanges = false
    })
    source.addEventListener('changed', () => { void refresh() })
    source.addEventListener('ended', () => { location.reload() })
    source.addEventListener('error', () => {
      mayMissChanges = true
      showDisconnected(true)
      // The browser does not retry a stream that was refused, for example by a proxy while the gateway starts.
      if (source.readyState === EventSource.CLOSED) setTimeout(retry, retryDelay)
    })
  }
  const retry = (): void => { void refresh().then(connect) }
  connect()
  // Signing out leads to the login page and ends the stream. The end of the stream must not reload this page then.
  document.querySelector('form.who')?.addEventListener('submit', () => { source.close() })
  // A page in the browser's back-forward cache would keep its connection open.
  addEventListener('pagehide', () => { source.close() })
  addEventListener('pageshow', ({ persisted }) => { if (persisted) location.reload() })
}

/** Shows or hides the banner about a lost connection. */
function showDisconnected (isDisconnected: boolean): void {
  const banner = document.querySelector<HTMLElement>('#cut-off')
  if (banner) banner.hidden = !isDisconnected
}

/**
 * The HTML of each part of the page as the server sent it. A part is not replaced by the same HTML, so that text
 * selected in it stays selected.
 */
const receivedHtml = new WeakMap<Element, string>()

let running: Promise<void> | undefined
let isRefreshPending = false

/** Replaces the changed parts of the page. Only one run is in progress; calls during a run cause one more run. */
async function refresh (): Promise<void> {
  if (running) {
    isRefreshPending = true
    return
  }
  running = replaceParts().catch(() => {})
  await running
  running = undefined
  if (isRefreshPending) {
    isRefreshPending = false
    await refresh()
  }
}

/**
 * Requests the page, and replaces each changed element with `data-live` and an id by the element with that id in the
 * response. Elements in which the user is working are not replaced. In a list (`data-rows`), only new and removed
 * rows change.
 */
async function replaceParts (): Promise<void> {
  const url = location.href
  const response = await fetch(url, { headers: { 'x-console-refresh': '1' } })
  // The session has ended, or what the page shows no longer exists. The reloaded page says so.
  if (response.redirected || [401, 404].includes(response.status)) location.reload()
  showDisconnected(!response.ok)
  if (!response.ok) return
  const page = new DOMParser().parseFromString(await response.text(), 'text/html')
  // A search may have changed the URL during the request.
  if (location.href !== url) return
  for (const next of page.querySelectorAll('[data-live][id]')) {
    // Not `next.id`: if a form has a field named `id`, this property is the field.
    const shown = document.getElementById(next.getAttribute('id') ?? '')
    const html = next.outerHTML
    if (shown === null || receivedHtml.get(shown) === html) continue
    const [rows, nextRows] = [shown.querySelector('[data-rows]'), next.querySelector('[data-rows]')]
    if (rows && nextRows) {
      for (const fresh of updateRows(rows, nextRows)) showLocalTimes(fresh)
      continue
    }
    if (isInUse(shown)) continue
    const focused = shown.contains(document.activeElement) ? document.activeElement?.id : undefined
    const fresh = document.importNode(next, true)
    shown.replaceWith(fresh)
    receivedHtml.set(fresh, html)
    showLocalTimes(fresh)
    window.htmx?.process(fresh)
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true })
  }
}
