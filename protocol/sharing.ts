/**
 * Makes one run of something serve all who ask for it while another run is under way. Everybody gets the result of a run that began after
 * he asked.
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
