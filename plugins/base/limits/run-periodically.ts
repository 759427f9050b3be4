import type { FastifyInstance } from 'fastify'

/**
 * Runs a task every `interval` ms, one run at a time. When the app closes, the current run is awaited.
 * @param task gets a signal that is aborted when the app closes
 * @param onError called with the error of a run; by default, it is ignored: the next run tries again
 * @returns a function that runs the task at once, unless it is running
 */
export function runPeriodically (
  app: FastifyInstance,
  interval: number,
  task: (signal: AbortSignal) => Promise<void>,
  onError: (error: unknown) => void = () => {}
): () => void {
  const closing = new AbortController()
  let running: Promise<void> | undefined
  const run = (): void => {
    running ??= task(closing.signal).catch(onError).finally(() => { running = undefined })
  }
  const timer = setInterval(run, interval).unref()
  app.addHook('onClose', async () => {
    clearInterval(timer)
    closing.abort()
    await running
  })
  return run
}
