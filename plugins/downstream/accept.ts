/** Which forms of answer a client takes. */
export interface Accepted { json: boolean, events: boolean, /** It names event streams before JSON. */ eventsFirst: boolean }

const everything: Accepted = { json: true, events: true, eventsFirst: false }
const known = new Map<string, Accepted>([['application/json, text/event-stream', everything]])

/** Reads `Accept` (RFC 9110 §12.5.1) leniently: no header, or a wildcard, takes all; quality zero takes nothing. */
export function acceptedBy (header: string | undefined): Accepted {
  if (header === undefined || header.trim() === '') return everything
  const remembered = known.get(header)
  if (remembered) return remembered
  let json = -1
  let events = -1
  header.toLowerCase().split(',').forEach((part, at) => {
    const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim())
    if (parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))) return
    if (json === -1 && (type === 'application/json' || type === 'application/*' || type === '*/*')) json = at
    if (events === -1 && (type === 'text/event-stream' || type === 'text/*' || type === '*/*')) events = at
  })
  return { json: json !== -1, events: events !== -1, eventsFirst: events !== -1 && (json === -1 || events < json) }
}
