/**
 * Lets concurrent callers share runs of a function. Each caller gets the result of a run that starts after its call; at
 * most one run is in progress at a time.
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
