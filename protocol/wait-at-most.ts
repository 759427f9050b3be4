/**
 * Waits for a promise, for at most `ms` milliseconds.
 * @param late called if that time passes first; its result is returned, or its error thrown
 */
export async function waitAtMost<Value, Late = undefined> (
  ms: number, promise: Promise<Value>, late: () => Late = () => undefined as Late
): Promise<Value | Late> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => { timer = setTimeout(resolve, ms) }).then(late)
  return await Promise.race([promise, timeout]).finally(() => { clearTimeout(timer) })
}
