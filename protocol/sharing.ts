/**
 * Wraps a function so that concurrent callers share its runs. Each caller gets the result of a run that starts after
 * its call; one run at a time is in progress.
 */
export function shareRuns<Result> (run: () => Promise<Result>): () => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve()
  let next: Promise<Result> | undefined
  return async () => {
    next ??= last.then(async () => {
      next = undefined
      return await run()
    })
    last = next.catch(() => {})
    return await next
  }
}
