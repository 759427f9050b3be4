/**
 * Lets concurrent callers share runs of a function: each caller gets the result of a run that began after its call, and
 * at most one run is in progress.
 * @param run the function
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
