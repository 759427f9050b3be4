/**
 * Waits for a promise, at most for a time in ms.
 * @param late called after that time: its result is returned, or its error thrown, in place of that of the promise
 */
export async function waitAtMost<Value, Late = undefined> (
  ms: number, promise: Promise<Value>, late: () => Late = () => undefined as Late
): Promise<Value | Late> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => { timer = setTimeout(resolve, ms) }).then(late)
  return await Promise.race([promise, timeout]).finally(() => { clearTimeout(timer) })
}
