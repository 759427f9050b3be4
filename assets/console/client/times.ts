const minute = 60_000
const hour = 60 * minute
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const clock =
  new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

/**
 * Shows each `time` of a part of the page in the reader's time zone: the distance within a day, else
 * the date; with `data-clock`, the time of the day.
 */
export function localise (part: ParentNode): void {
  for (const element of part.querySelectorAll<HTMLTimeElement>('time[datetime]')) {
    const at = new Date(element.dateTime)
    if (Number.isNaN(at.getTime())) continue
    const full = absolute.format(at)
    element.title = full
    element.textContent = element.dataset.clock === undefined
      ? distance(at.getTime() - Date.now()) ?? full
      : clock.format(at)
  }
}

function distance (ms: number): string | undefined {
  const size = Math.abs(ms)
  if (size < minute) return 'just now'
  if (size < hour) return relative.format(Math.round(ms / minute), 'minute')
  if (size < 24 * hour) return relative.format(Math.round(ms / hour), 'hour')
  return undefined
}

/** Times are shown at once, in what comes later, and again each minute. */
export function showTimes (): void {
  localise(document)
  document.addEventListener('htmx:after:swap', () => { localise(document) })
  setInterval(() => { localise(document) }, minute)
}
