/**
 * Lets concurrent callers share runs of one function: each gets the result of a run that began after its call, and at
 * most one run is under way.
 * @param run what is run, once at a time
 */
export function sharing<Result> (run: () => Promise<Result>): () => Promise<Result> {
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
