/** Delays before an event stream is opened again, in ms: the default, and the bounds of the delay that an upstream asks for. */
export const reconnect = { delay: 1_000, shortest: 500, longest: 30_000 } as const

/** True for a temporary status: the upstream still holds the former stream, limits the rate of requests, or has a fault. */
export const mayPass = (status: number): boolean => status === 408 || status === 409 || status === 429 || status >= 500
