/** The content types that a client accepts for an answer. */
export interface AcceptedTypes {
  json: boolean
  events: boolean
  /** Whether `Accept` lists event streams before JSON, or event streams only. */
  eventsFirst: boolean
}

const acceptAll: AcceptedTypes = { json: true, events: true, eventsFirst: false }
/** The header that most clients send. It need not be parsed. */
const usualHeader = 'application/json, text/event-stream'

/**
 * Parses `Accept` (RFC 9110, section 12.5.1) leniently: a missing or empty header accepts everything, and quality
 * values other than 0 are ignored.
 */
export function parseAccept (header: string | undefined): AcceptedTypes {
  if (header === undefined || header === usualHeader || header.trim() === '') return acceptAll
  const ranges = header.toLowerCase().split(',').map((part) => {
    const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim())
    return { type, refused: parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)) }
  })
  /** Returns the position of the first range in `names` that the header contains; -1 if it is missing or refused. */
  const positionOf = (...names: string[]): number => {
    for (const name of names) {
      const at = ranges.findIndex(({ type }) => type === name)
      if (at !== -1) return ranges[at]?.refused === true ? -1 : at
    }
    return -1
  }
  const json = positionOf('application/json', 'application/*', '*/*')
  const events = positionOf('text/event-stream', 'text/*', '*/*')
  return { json: json !== -1, events: events !== -1, eventsFirst: events !== -1 && (json === -1 || events < json) }
}
