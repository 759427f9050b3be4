const minute = 60_000
const hour = 60 * minute
const makeFormats = () => ({
  relative: new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' }),
  clock: new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false }),
  exact: new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' }),
  absolute: new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
})
let formats: ReturnType<typeof makeFormats> | undefined
/** Made on first use: the first format in a new process of the browser loads data, and the login shows no time. */
function getFormats (): ReturnType<typeof makeFormats> {
  formats ??= makeFormats()
  return formats
}

/**
 * Shows each `time` element in the reader's time zone: as relative time within a day, else as a date; with
 * `data-clock`, as time of day; with `data-exact`, as a date and time to the second, followed by the relative time.
 */
export function localise (part: ParentNode): void {
  for (const element of part.querySelectorAll<HTMLTimeElement>('time[datetime]')) {
    const at = new Date(element.dateTime)
    if (Number.isNaN(at.getTime())) continue
    element.title = getFormats().absolute.format(at)
    element.textContent = textOf(at, element.dataset)
  }
}

function textOf (at: Date, { clock: isClock, exact: isExact }: DOMStringMap): string {
  const { absolute, clock, exact } = getFormats()
  if (isClock !== undefined) return clock.format(at)
  const since = distance(at.getTime() - Date.now())
  if (isExact === undefined) return since ?? absolute.format(at)
  return since === undefined ? exact.format(at) : `${exact.format(at)} (${since})`
}

function distance (ms: number): string | undefined {
  const size = Math.abs(ms)
  const { relative } = getFormats()
  if (size < minute) return 'just now'
  if (size < hour) return relative.format(Math.round(ms / minute), 'minute')
  if (size < 24 * hour) return relative.format(Math.round(ms / hour), 'hour')
  return undefined
}

/** Localises the times of the page, those of parts that htmx inserts, and all again every minute. */
export function showTimes (): void {
  localise(document)
  document.addEventListener('htmx:after:swap', () => { localise(document) })
  setInterval(() => { localise(document) }, minute)
}
