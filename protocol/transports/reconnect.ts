/** How long before an event stream is asked for again, in ms: where the upstream says nothing else, and at least and at most. */
export const reconnect = { delay: 1_000, shortest: 500, longest: 30_000 } as const

/** A status that may be another one soon: a former stream that the upstream has not missed yet, too much at once, or a fault of its own. */
export const mayPass = (status: number): boolean => status === 408 || status === 409 || status === 429 || status >= 500
