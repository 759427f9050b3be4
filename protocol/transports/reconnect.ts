/** Delays before an event stream is reopened, in ms: the default, and bounds for the delay that the server requests. */
export const reconnectDelays = { delay: 1_000, shortest: 500, longest: 30_000 } as const

/** Whether a status is temporary: the server still has the previous stream open, limits the rate, or has a fault. */
export const isTransientStatus = (status: number): boolean =>
  status === 408 || status === 409 || status === 429 || status >= 500
