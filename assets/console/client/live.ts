import { addRows, isInUse } from './rows.ts'
import { localise } from './times.ts'

declare global {
  interface Window { htmx?: { process: (element: Element) => void } }
}

/** Time until a stream is asked for again that was refused, in ms. */
const retryDelay = 5_000

/**
 * Follows the stream of the page: asks for the page again when its data changed, and says when the stream is cut off.
 * It connects again by itself; what changed meanwhile is asked for then.
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
      // The browser does not try a stream again that was refused, such as by a proxy while the gateway starts.
      if (source.readyState === EventSource.CLOSED) setTimeout(retry, retryDelay)
    })
  }
  const retry = (): void => { void refresh().then(connect) }
  connect()
  // Signing out leads to the login page, not back to this one.
  document.querySelector('form.who')?.addEventListener('submit', () => { source.close() })
  // A page in the back-forward cache would hold a connection.
  addEventListener('pagehide', () => { source.close() })
  addEventListener('pageshow', ({ persisted }) => { if (persisted) location.reload() })
}

function showCutOff (isCutOff: boolean): void {
  const banner = document.querySelector<HTMLElement>('#cut-off')
  if (banner) banner.hidden = !isCutOff
}

/** The parts of the page as the server sent them: what is the same stays, with what the reader selected in it. */
const sources = new WeakMap<Element, string>()

let running: Promise<void> | undefined
let isAskedAgain = false

/** One request at a time: what changes during one is covered by one more. */
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

/** Replaces each element that has an id and `data-live` by the one of the same id in the page as it is now. */
async function replaceParts (): Promise<void> {
  const asked = location.href
  const response = await fetch(asked, { headers: { 'x-console-refresh': '1' } })
  // The session has ended, or what the page shows is gone: the server says so.
  if (response.redirected || [401, 404].includes(response.status)) location.reload()
  showCutOff(!response.ok)
  if (!response.ok) return
  const page = new DOMParser().parseFromString(await response.text(), 'text/html')
  // The search may have changed the address meanwhile.
  if (location.href !== asked) return
  for (const next of page.querySelectorAll('[data-live][id]')) {
    // A form with a field `id` has that in place of its own.
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
