const minute = 60_000
const hour = 60 * minute
const createFormats = () => ({
  relative: new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' }),
  clock: new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false }),
  exact: new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' }),
  absolute: new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
})
let formats: ReturnType<typeof createFormats> | undefined
/** Returns the formats. They are created on first use, since this takes a while, and the login page shows no times. */
function getFormats (): ReturnType<typeof createFormats> {
  formats ??= createFormats()
  return formats
}

/**
 * Shows the `time` elements in a part of the page in the reader's time zone: as a relative time within a day, otherwise
 * as date and time; with `data-clock`, as a time of day; with `data-exact`, as date and time to the second, followed by
 * the relative time if it is within a day.
 */
export function showLocalTimes (part: ParentNode): void {
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
  const since = relativeTime(at.getTime() - Date.now())
  if (isExact === undefined) return since ?? absolute.format(at)
  return since === undefined ? exact.format(at) : `${exact.format(at)} (${since})`
}

/**
 * Returns a time difference in words, such as `2 min. ago`; undefined from a day on.
 * @param ms negative for the past
 */
function relativeTime (ms: number): string | undefined {
  const size = Math.abs(ms)
  const { relative } = getFormats()
  if (size < minute) return 'just now'
  if (size < hour) return relative.format(Math.round(ms / minute), 'minute')
  if (size < 24 * hour) return relative.format(Math.round(ms / hour), 'hour')
  return undefined
}

/** Applies `showLocalTimes` to the page now, after each swap by htmx, and every minute. */
export function keepTimesLocal (): void {
  showLocalTimes(document)
  document.addEventListener('htmx:after:swap', () => { showLocalTimes(document) })
  setInterval(() => { showLocalTimes(document) }, minute)
}
