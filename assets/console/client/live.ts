import { addRows, isInUse } from './rows.ts'
import { showLocalTimes } from './times.ts'

declare global {
  interface Window { htmx?: { process: (element: Element) => void } }
}

/** Time until a stream that was refused is requested again, in ms. */
const retryDelay = 5_000

/**
 * Follows the event stream of the page: replaces the parts whose data has changed, and shows whether the connection is
 * lost. After a reconnect, it fetches the changes that it may have missed.
 * @param url the address of the stream
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
      // The browser does not retry a refused stream, for example when a proxy refuses it while the gateway starts.
      if (source.readyState === EventSource.CLOSED) setTimeout(retry, retryDelay)
    })
  }
  const retry = (): void => { void refresh().then(connect) }
  connect()
  // Signing out leads to the login page: the end of the stream must not reload this page.
  document.querySelector('form.who')?.addEventListener('submit', () => { source.close() })
  // In the back-forward cache, the page would keep its connection open.
  addEventListener('pagehide', () => { source.close() })
  addEventListener('pageshow', ({ persisted }) => { if (persisted) location.reload() })
}

/** Shows or hides the banner about a lost connection. */
function showDisconnected (isDisconnected: boolean): void {
  const banner = document.querySelector<HTMLElement>('#cut-off')
  if (banner) banner.hidden = !isDisconnected
}

/**
 * The HTML of each part as the server sent it. A part with the same HTML is not replaced, so that a selection in it is
 * kept.
 */
const receivedHtml = new WeakMap<Element, string>()

let running: Promise<void> | undefined
let isRefreshPending = false

/** Replaces the changed parts. It runs once at a time; calls while it runs cause one more run. */
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

/** Requests the page, and replaces each element with an id and `data-live` by the one with that id in the response. */
async function replaceParts (): Promise<void> {
  const url = location.href
  const response = await fetch(url, { headers: { 'x-console-refresh': '1' } })
  // The session has ended, or the shown object no longer exists: the reloaded page says so.
  if (response.redirected || [401, 404].includes(response.status)) location.reload()
  showDisconnected(!response.ok)
  if (!response.ok) return
  const page = new DOMParser().parseFromString(await response.text(), 'text/html')
  // A search may have changed the URL during the request.
  if (location.href !== url) return
  for (const next of page.querySelectorAll('[data-live][id]')) {
    // The attribute is read, since the property `id` of a form with a field named `id` is that field.
    const shown = document.getElementById(next.getAttribute('id') ?? '')
    const html = next.outerHTML
    if (shown === null || receivedHtml.get(shown) === html) continue
    const [rows, nextRows] = [shown.querySelector('[data-rows]'), next.querySelector('[data-rows]')]
    if (rows && nextRows) {
      for (const fresh of addRows(rows, nextRows)) showLocalTimes(fresh)
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
