/** Which forms of answer a client takes. */
export interface Accepted { json: boolean, events: boolean, /** It names event streams before JSON. */ eventsFirst: boolean }

const everything: Accepted = { json: true, events: true, eventsFirst: false }
const known = new Map<string, Accepted>([['application/json, text/event-stream', everything]])

/** Reads `Accept` (RFC 9110 §12.5.1) leniently: no header, or a wildcard, takes all; quality zero takes nothing. */
export function acceptedBy (header: string | undefined): Accepted {
  if (header === undefined || header.trim() === '') return everything
  const remembered = known.get(header)
  if (remembered) return remembered
  const ranges = header.toLowerCase().split(',').map((part) => {
    const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim())
    return { type, refused: parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)) }
  })
  /** Where a type is accepted; the most specific range that names it decides. -1: it is not. */
  const placeOf = (...names: string[]): number => {
    for (const name of names) {
      const at = ranges.findIndex(({ type }) => type === name)
      if (at !== -1) return ranges[at]?.refused === true ? -1 : at
    }
    return -1
  }
  const json = placeOf('application/json', 'application/*', '*/*')
  const events = placeOf('text/event-stream', 'text/*', '*/*')
  return { json: json !== -1, events: events !== -1, eventsFirst: events !== -1 && (json === -1 || events < json) }
}
